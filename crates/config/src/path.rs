//! The way from the top of the config to one value, written like `sentinel.bypass[2]`.

use std::fmt;

/// A path that is only written out when something is wrong at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(parent, key) => {
                write!(f, "{parent}")?;
                if !matches!(parent, Self::Root) {
                    f.write_str(".")?;
                }
                write_key(f, key)
            }
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A key that could be mistaken for several (`mcp.search`) is put in quotes.
fn write_key(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '*' | '?' | '/' | ':');
    if !key.is_empty() && key.len() <= LONGEST && key.chars().all(plain) {
        return f.write_str(key);
    }
    f.write_str(&quote(key))
}

/// `text` in quotes on one line, cut where it is longer than anybody wants to read in a message.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}

/// Characters of the user's own text that a message repeats.
const LONGEST: usize = 60;

#[cfg(test)]
mod tests {
    use super::{Path, quote};

    #[test]
    fn keys_are_joined_by_dots_and_list_items_by_brackets() {
        let (sentinel, root) = ("sentinel", Path::Root);
        let section = Path::Key(&root, sentinel);
        let list = Path::Key(&section, "bypass");
        assert_eq!(Path::Index(&list, 2).to_string(), "sentinel.bypass[2]");
    }

    #[test]
    fn a_key_with_a_dot_is_quoted() {
        assert_eq!(Path::Key(&Path::Root, "mcp.search").to_string(), "\"mcp.search\"");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let cut = quote(&"ü".repeat(1_000));
        assert_eq!(cut.chars().filter(|c| *c == 'ü').count(), 60);
        assert!(cut.ends_with("…\""));
    }
}
