//! Result normalisation.
use crate::config::ConfigError;
use regex_automata::meta::Regex;
/// Checks that a pattern compiles.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), ConfigError> {
    Regex::new(pattern)
        .map(drop)
        .map_err(|error| ConfigError::BadPattern { pattern: pattern.to_owned(), reason: error.to_string() })
}
