//! The part of a text that is looked at.

/// Bytes that are kept of each end of a long text: far more than 64 tokens take.
const END: usize = 2_048;

/// The text with every run of white space as one blank, and of a long one only its head and its tail. Tokenizers split
/// at white space and never see it, so indentation would only push words out.
///
/// Takes time for what is kept, and not for the rest of a huge text.
pub(crate) fn excerpt(text: &str) -> String {
    // Even when every other byte is white space, this much has enough words.
    let (head, tail) = ends(text, 4 * END);
    let mut words = squeeze(head);
    if let Some(tail) = tail {
        words.push(' ');
        words.push_str(&squeeze(tail));
    }
    let (head, tail) = ends(&words, END);
    match tail {
        Some(tail) => format!("{} {}", head.trim_end(), tail.trim_start()),
        None => words,
    }
}

/// The text whole, or its first and last bytes up to this number, cut where characters begin.
fn ends(text: &str, each: usize) -> (&str, Option<&str>) {
    if text.len() <= 2 * each {
        return (text, None);
    }
    // Room for the blank between them: an excerpt of an excerpt is the same.
    let head = (0..each).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - each..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    (&text[..head], Some(&text[tail..]))
}

fn squeeze(text: &str) -> String {
    let mut words = String::with_capacity(text.len().min(4 * END));
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{END, excerpt};

    #[test]
    fn white_space_is_one_blank() {
        assert_eq!(excerpt("  fn main() {\n\t\tgo();\r\n}  "), "fn main() { go(); }");
        assert_eq!(excerpt(" \n\t "), "");
    }

    #[test]
    fn of_a_long_text_both_ends_stay() {
        let text = format!("first {} last", "word ".repeat(100_000));
        let excerpt = excerpt(&text);
        assert!(excerpt.starts_with("first word") && excerpt.ends_with("word last"));
        assert!(excerpt.len() <= 2 * END);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_between_characters(text in "(\\PC|é|漢|🦀|\0| ){0,3000}") {
            let once = excerpt(&text);
            prop_assert!(once.len() <= 2 * END);
            prop_assert_eq!(excerpt(&once), once);
        }
    }
}
