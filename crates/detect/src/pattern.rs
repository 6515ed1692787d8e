//! Tool names with wildcards.

use std::fmt;

/// A tool name in which `*` stands for any text and `?` for one character.
///
/// ```
/// use loopbreaker::ToolPattern;
/// assert!(ToolPattern::new("mcp__*__search").matches("mcp__web__search"));
/// assert!(!ToolPattern::new("search").matches("search_web"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolPattern {
    text: Box<str>,
    glob: bool,
}

impl ToolPattern {
    /// The pattern that is written so.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        let glob = text.contains(['*', '?']);
        Self { text, glob }
    }

    /// Whether it fits a tool's name.
    pub fn matches(&self, tool: &str) -> bool {
        if self.glob { glob_matches(self.text.as_bytes(), tool.as_bytes()) } else { *self.text == *tool }
    }

    /// Whether it has a wildcard.
    pub const fn is_glob(&self) -> bool {
        self.glob
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Classic two-pointer glob: on a mismatch it goes back to the last `*` only, so it is at worst quadratic in short
/// names and never exponential.
fn glob_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut back_to: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back_to = Some((p + 1, n));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                n += 1;
                // One character, not one byte.
                while name.get(n).is_some_and(|byte| byte & 0xC0 == 0x80) {
                    n += 1;
                }
            }
            Some(byte) if *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match back_to {
                Some((star_p, star_n)) => {
                    p = star_p;
                    n = star_n + 1;
                    back_to = Some((star_p, star_n + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::ToolPattern;

    #[test]
    fn a_plain_name_fits_only_itself() {
        assert!(ToolPattern::new("read").matches("read"));
        assert!(!ToolPattern::new("read").matches("read_file"));
    }

    #[test]
    fn stars_fit_any_text_and_the_last_one_may_be_empty() {
        let pattern = ToolPattern::new("*_status*");
        assert!(pattern.matches("get_job_status"));
        assert!(pattern.matches("_status_x"));
        assert!(!pattern.matches("status"));
    }

    #[test]
    fn a_question_mark_is_one_character_even_beyond_ascii() {
        assert!(ToolPattern::new("t?l").matches("tül"));
        assert!(!ToolPattern::new("t?l").matches("tl"));
    }
}
