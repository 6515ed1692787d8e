//! Text that fits a terminal and cannot take it over.

use std::borrow::Cow;

/// The width of the terminal in characters; 100 where there is none.
pub(crate) fn width() -> usize {
    let columns = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    columns.filter(|columns| *columns > 0).unwrap_or(100)
}

/// The text without what a terminal would obey: control characters, and marks that turn the direction of writing.
/// Run ids and tool names come from agents, so they may hold anything.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_obeyed) { text.replace(is_obeyed, "\u{FFFD}").into() } else { text.into() }
}

/// The text in at most `width` characters. What is too much goes out of the middle, since ids differ at their ends.
pub(crate) fn cut_middle(text: &str, width: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= width {
        return text.into();
    }
    let kept = width.saturating_sub(1);
    let tail = kept / 2;
    let head = text.chars().take(kept - tail);
    head.chain(std::iter::once('…').take(width)).chain(text.chars().skip(length - tail)).collect()
}

/// The text in lines of at most `width` characters, broken at spaces; a longer word stands alone.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += letters;
    }
    if length > 0 {
        lines.push(line);
    }
    lines
}

fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_id_keeps_both_ends() {
        assert_eq!(cut_middle("session-2026-02-11-0007", 11), "sessi…-0007");
        assert_eq!(cut_middle("short", 11), "short");
    }

    #[test]
    fn escape_codes_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{202E}"), "a\u{FFFD}[2Jb\u{FFFD}");
    }

    #[test]
    fn words_are_wrapped_at_spaces() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
    }

    proptest! {
        #[test]
        fn a_cut_text_always_fits(text in ".{0,40}", width in 0_usize..50) {
            prop_assert!(cut_middle(&text, width).chars().count() <= width);
        }

        #[test]
        fn wrapping_keeps_every_word(text in "[a-z ]{0,80}", width in 1_usize..30) {
            let words: Vec<_> = text.split_whitespace().collect();
            prop_assert_eq!(wrap(&text, width).join(" "), words.join(" "));
        }
    }
}
