//! JSON as it is written: words, and the walk over objects and lists without a tree.

mod cursor;
mod escape;
mod text;

pub use cursor::Broken;
pub use text::{Text, hash, string, words};

pub(crate) use cursor::Cursor;
pub(crate) use escape::{canonical_string, push_escaped, push_unescaped, unquoted};
