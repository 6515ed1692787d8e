//! What is wrong with a config, and where.

use std::fmt;

use crate::tree::Spot;

/// One thing that is wrong (or rarely meant) in a config text, with the place to look at.
///
/// The name of the config itself is not part of it: the text may come from a request body as well.
///
/// ```
/// let problems = loopbreaker_config::Config::parse("sentinel: { default: { threshold: 0 } }").unwrap_err();
/// assert_eq!((problems[0].line, problems[0].column), (1, 35));
/// assert_eq!(problems[0].path, "sentinel.default.threshold");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The policy file that it stands in, as the config names it; `None` for the config itself.
    pub file: Option<String>,
    /// Line of the text, counted from 1.
    pub line: u64,
    /// Character of the line, counted from 1.
    pub column: u64,
    /// The key to blame, such as `sentinel.bypass[2]`; empty when the text as a whole is.
    pub path: String,
    /// What is wrong, in lower case and without a full stop.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem of the text as a whole at this place.
    pub(crate) fn at(spot: Spot, message: impl Into<String>) -> Self {
        let Spot { line, column } = spot;
        Self { file: None, line, column, path: String::new(), message: message.into(), hint: None }
    }

    /// The same problem with advice.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same problem of one key.
    pub(crate) fn path(self, path: impl fmt::Display) -> Self {
        Self { path: path.to_string(), ..self }
    }
}

/// `31:7: sentinel.default.threshold: what is wrong`, and the hint on a line of its own. The caller knows the
/// config's name and puts it in front; the name of a policy file stands there already.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
