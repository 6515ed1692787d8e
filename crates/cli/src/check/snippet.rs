//! The source line of a problem, with a caret under its column.

use std::io::{self, Write};

use crate::terminal::printable;

/// Writes the line and the caret; nothing when the problem is behind the end of the text.
pub(super) fn write<W: Write>(out: &mut W, text: &str, line: u64, column: u64) -> io::Result<()> {
    let Some(source) = nth_line(text, line).map(without_passwords) else { return Ok(()) };
    let column = usize::try_from(column).unwrap_or(1).max(1) - 1;
    // Of a long line only the part around the column is shown.
    let from = column.saturating_sub(MAX_SHOWN / 2);
    let part: String =
        source.chars().skip(from).take(MAX_SHOWN).map(|c| if c == '\t' { ' ' } else { c }).collect();
    let margin = line.to_string().len();
    writeln!(out, "  {line} | {}", printable(part.trim_end()))?;
    writeln!(out, "  {:margin$} | {:indent$}^", "", "", indent = column - from)
}

/// The line without what stands before the host of a URL, each character as a star, so that the caret stays in its place.
fn without_passwords(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("://") {
        let end = behind.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '/' | ',' | '}'));
        let authority = behind.get(..end.unwrap_or(behind.len())).unwrap_or_default();
        let login = authority.rfind('@').unwrap_or(0);
        shown.push_str(before);
        shown.push_str("://");
        shown.extend(
            authority.chars().take(authority.get(..login).unwrap_or_default().chars().count()).map(|_| '*'),
        );
        rest = behind.get(login..).unwrap_or_default();
    }
    shown + rest
}

/// The line of this number, counted from 1. `\n`, `\r\n` and a lone `\r` all end one, as for the parser.
fn nth_line(text: &str, number: u64) -> Option<&str> {
    let mut rest = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    for _ in 1..number {
        let end = rest.find(['\n', '\r'])?;
        let ending = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + ending..];
    }
    rest.split(['\n', '\r']).next().filter(|line| !line.is_empty())
}

const MAX_SHOWN: usize = 90;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, line: u64, column: u64) -> String {
        let mut out = Vec::new();
        write(&mut out, text, line, column).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_caret_stands_under_the_column() {
        assert_eq!(shown("a: 1\r\nbb: x\n", 2, 5), "  2 | bb: x\n    |     ^\n");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_column_is_shown() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let shown = shown(&text, 1, 501);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0].find('X'), lines[1].find('^'));
        assert!(lines[0].len() < 100);
    }

    #[test]
    fn a_password_is_not_shown_and_the_caret_stays() {
        let text = "log: { url: 'postgres://lb:se:cr@et@/db', state: redis://:x@cache }";
        assert_eq!(
            without_passwords(text),
            "log: { url: 'postgres://***********@/db', state: redis://**@cache }"
        );
        assert_eq!(without_passwords("a: https://host/b@c # d@e"), "a: https://host/b@c # d@e");
    }

    #[test]
    fn behind_the_end_there_is_no_line() {
        assert_eq!(shown("a: 1\n", 9, 1), "");
    }
}
