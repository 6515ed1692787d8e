//! Cheap checks of the whole text, before any of it is parsed.

use crate::problem::Problem;
use crate::tree::Spot;

/// The largest text that is read.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// The text without its byte order mark, or why it is not read at all.
pub(crate) fn guard(text: &str) -> Result<&str, Problem> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if text.len() > MAX_BYTES {
        let message = format!("the config has {} bytes, at most {MAX_BYTES} (1 MiB) are read", text.len());
        return Err(Problem::at(Spot::START, message).hint("is this the right file?"));
    }
    match unprintable(text) {
        Some((spot, c)) => {
            let message = format!("the character U+{:04X} cannot stand in a config", u32::from(c));
            Err(Problem::at(spot, message).hint("save the file as plain UTF-8 text"))
        }
        None => Ok(text),
    }
}

/// The first control character. YAML forbids them, and the parser takes some NULs for the end of the text.
fn unprintable(text: &str) -> Option<(Spot, char)> {
    let bad = |c: &char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let index = text.char_indices().find(|(_, c)| bad(c)).map(|(index, _)| index)?;
    let (before, c) = (&text[..index], text[index..].chars().next()?);
    let line = lines(before).count().max(1);
    let column = lines(before).last().map_or(0, |last| last.chars().count()) + 1;
    Some((Spot { line: line as u64, column: column as u64 }, c))
}

/// The lines of a text as the parser counts them: `\n`, `\r\n` and a lone `\r` all end one.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r']) else {
            return rest.take();
        };
        let ending = if text[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&text[end + ending..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, guard, lines};

    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(guard("\u{FEFF}a: 1"), Ok("a: 1"));
    }

    #[test]
    fn a_nul_byte_is_refused_where_it_stands() {
        let problem = guard("a: 1\r\nb: x\0y").unwrap_err();
        assert_eq!((problem.line, problem.column), (2, 5));
        assert_eq!(problem.message, "the character U+0000 cannot stand in a config");
    }

    #[test]
    fn a_text_of_more_than_one_mebibyte_is_refused_at_once() {
        assert!(guard(&" ".repeat(MAX_BYTES)).is_ok());
        assert!(guard(&" ".repeat(MAX_BYTES + 1)).unwrap_err().message.contains("at most 1048576"));
    }

    #[test]
    fn every_line_ending_ends_a_line() {
        assert_eq!(lines("a\r\nb\rc\n").collect::<Vec<_>>(), ["a", "b", "c", ""]);
    }
}
