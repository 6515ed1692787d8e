//! Says in plain words what the parser complains about.

use saphyr_parser::ScanError;

use crate::compose::{MAX_DEPTH, spot};
use crate::guard::lines;
use crate::problem::Problem;
use crate::tree::Spot;

/// The problem behind a parser's error. `innermost` is where the innermost open list or map began.
pub(crate) fn problem(error: &ScanError, text: &str, innermost: Option<Spot>) -> Problem {
    let at = spot(*error.marker());
    let info = error.info();
    let bracket = innermost.and_then(|opened| bracket(opened, text));
    if let Some(bracket) = bracket
        && (info.contains("invalid indentation") || is_at_the_end(at, text))
    {
        return if closes_here(at, text) { badly_closed(at) } else { unclosed(bracket) };
    }
    // Inside brackets, as in JSON, tabs do no harm.
    if bracket.is_none() && is_indented_by_tab(at, text) {
        return Problem::at(at, "this line is indented by a tab").hint("indent with spaces");
    }
    let colon_missing =
        info.contains(LATE_COLON) || (info.contains(SECOND_COLON) && is_first_colon(at, text));
    if colon_missing {
        let problem = Problem::at(at, "expected `key: value`").hint("write a `:` and a space after the key");
        return on_the_line_before(problem, text);
    }
    match EXPLAINED.iter().find(|known| info.contains(known.parser_says)) {
        Some(known) => Problem::at(at, known.message).hint(known.hint),
        None => Problem::at(at, info),
    }
}

/// A bracket that is never closed is noticed far from it, at the end of the text or at the next section. The
/// bracket itself is what the user must look at.
fn unclosed((opened, bracket): (Spot, char)) -> Problem {
    let closing = if bracket == '[' { ']' } else { '}' };
    let hint = format!("add the `{closing}`, and indent every line up to it");
    Problem::at(opened, format!("this `{bracket}` is not closed")).hint(hint)
}

/// The parser lets a closing bracket stand below its key, except when there is nothing between the brackets.
fn badly_closed(at: Spot) -> Problem {
    Problem::at(at, "this closing bracket must stand further right than its key")
        .hint("put one more space before it, or both brackets on one line")
}

fn closes_here(at: Spot, text: &str) -> bool {
    let here = line(text, at.line).and_then(|line| line.chars().nth(at.column as usize - 1));
    matches!(here, Some(']' | '}'))
}

/// The bracket that opened a list or map; `None` when it is one without brackets.
fn bracket(opened: Spot, text: &str) -> Option<(Spot, char)> {
    let first = line(text, opened.line)?.chars().nth(opened.column as usize - 1)?;
    matches!(first, '[' | '{').then_some((opened, first))
}

/// The parser puts the end of the text on a line of its own.
fn is_at_the_end(at: Spot, text: &str) -> bool {
    lines(text).skip(at.line as usize - 1).all(|line| line.trim().is_empty())
}

fn is_indented_by_tab(at: Spot, text: &str) -> bool {
    let line = line(text, at.line).unwrap_or_default();
    line[..line.len() - line.trim_start().len()].contains('\t')
}

/// A line without a colon is taken for a text that the next line continues, so that one seems to have a colon
/// too many although it has only one.
fn is_first_colon(at: Spot, text: &str) -> bool {
    let before = line(text, at.line).unwrap_or_default().chars().take(at.column as usize - 1);
    !before.collect::<String>().contains(": ")
}

/// The parser notices a missing colon only at the next line that has something on it.
fn on_the_line_before(problem: Problem, text: &str) -> Problem {
    let before = lines(text).take(problem.line as usize - 1).enumerate();
    let written = before.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    match written.last() {
        Some((index, line)) => {
            let column = line.chars().take_while(|c| c.is_whitespace()).count() as u64 + 1;
            Problem { line: index as u64 + 1, column, ..problem }
        }
        None => problem,
    }
}

fn line(text: &str, number: u64) -> Option<&str> {
    lines(text).nth(number as usize - 1)
}

struct Explained {
    parser_says: &'static str,
    message: &'static str,
    hint: &'static str,
}

const fn explained(parser_says: &'static str, message: &'static str, hint: &'static str) -> Explained {
    Explained { parser_says, message, hint }
}

/// The complaints that people meet, in our words; the first that fits counts.
const EXPLAINED: &[Explained] = &[
    explained("recursion limit", TOO_DEEP, "no setting is nested so deep; is a bracket missing?"),
    explained("tabs disallowed", "a tab stands where spaces are needed", "indent with spaces"),
    explained("a tab", "a tab stands where spaces are needed", "indent with spaces"),
    explained("tab cannot", "a tab stands where spaces are needed", "indent with spaces"),
    explained(
        "unknown anchor",
        "there is no anchor of this name",
        "put a pattern that starts with `*` in quotes, such as \"*_status\"",
    ),
    explained(
        "scanning an anchor or alias",
        "a name must follow `*` or `&`",
        "put a pattern that starts with `*` in quotes, such as \"*\"",
    ),
    explained("unexpected end of stream", "this quote is not closed", "add the closing quote"),
    explained("invalid indentation in quoted", "this quote is not closed", "add the closing quote"),
    explained("unexpected document indicator", "this quote is not closed", "add the closing quote"),
    explained(
        "trailing content after double-quoted",
        "text follows the closing quote",
        "remove it, or escape the quote as `\\\"`",
    ),
    explained(
        "unknown escape",
        "this text has an unknown `\\` escape",
        "write `\\\\` for a backslash, or use single quotes",
    ),
    explained(
        "hexadecimal number",
        "this text has a broken `\\x` or `\\u` escape",
        "write `\\\\` for a backslash, or use single quotes",
    ),
    explained(
        "Unicode character escape",
        "this text has a `\\u` escape that is no character",
        "write the character itself",
    ),
    explained("misplaced bracket", "this bracket closes nothing", "remove it, or open it before"),
    explained(
        "did not find expected key",
        "this line is indented unlike its neighbours",
        "indent all keys of a map by the same number of spaces",
    ),
    explained(
        "invalid indentation",
        "this line is indented unlike its neighbours",
        "indent all keys of a map by the same number of spaces",
    ),
    explained("'-' indicator", "expected a list item", "begin each item with `- ` in the same column"),
    explained(
        "sequence entries are not allowed",
        "a list cannot begin here",
        "begin it on a line of its own",
    ),
    explained(
        SECOND_COLON,
        "a second `: ` cannot stand in one value",
        "put the value in quotes, or begin a map on a line of its own",
    ),
    explained(
        "expected ',' or '}'",
        "expected `,` or `}`",
        "separate entries with commas and close the map with `}`",
    ),
    explained(
        "expected ',' or ']'",
        "expected `,` or `]`",
        "separate items with commas and close the list with `]`",
    ),
    explained("may not precede", "a space is missing after `:`", "write `key: [...]`"),
    explained("unexpected character", "a value cannot begin with this character", "put the value in quotes"),
    explained(
        "comment intercepting",
        "a comment stands inside a text of several lines",
        "move the comment, or put the text in quotes",
    ),
    explained("expected <document start>", "something follows the end of the config", "remove it"),
    explained("byte order mark", "a byte order mark stands inside the config", "remove it"),
    explained(
        "handle wasn't declared",
        "this tag is not supported",
        "remove it; the type of a value follows from its key",
    ),
];

const LATE_COLON: &str = "simple key expect";
const SECOND_COLON: &str = "mapping values are not allowed";
const TOO_DEEP: &str = "lists and maps are nested more than 64 levels deep";
const _: () = assert!(MAX_DEPTH == 64, "TOO_DEEP names the limit");
