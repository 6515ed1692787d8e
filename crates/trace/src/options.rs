//! How to read.

use crate::Format;

/// How an input is read.
///
/// ```
/// use loopbreaker_trace::{Format, Options};
/// let options = Options { format: Some(Format::OpenAi), ..Options::named("chat") };
/// assert_eq!(options.max_line, Options::MAX_LINE);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options<'a> {
    /// The format of the input; `None` detects it by content.
    pub format: Option<Format>,
    /// The run id where the input has none, for example the stem of the file name.
    pub name: &'a str,
    /// The longest line in bytes, and the largest document that is spread over several lines. What is longer is
    /// skipped without being held, and reported.
    pub max_line: usize,
}

impl<'a> Options<'a> {
    /// The default of [`Options::max_line`]: 64 MiB.
    pub const MAX_LINE: usize = 64 << 20;

    /// The defaults, for an input of this name.
    pub const fn named(name: &'a str) -> Self {
        Self { format: None, name, max_line: Self::MAX_LINE }
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self::named("run")
    }
}
