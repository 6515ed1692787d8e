//! An answer before it is put into a dialect.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::turn::{Turn, Usage};

/// When every answer was given: a constant, so that the same script gives the same bytes.
pub(crate) const CREATED: u64 = 1_763_200_000;

/// What the model answers.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Which answer of this provider it is; ids are made from it.
    pub(crate) number: u64,
    pub(crate) model: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Usage,
}

/// One part of an answer, in the order in which models give them: thoughts, words, calls.
#[derive(Debug)]
pub(crate) enum Part {
    Reasoning(String),
    Text(String),
    Call(Call),
}

/// One tool call of an answer.
#[derive(Debug)]
pub(crate) struct Call {
    /// Unique among the calls of this provider.
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) args: Box<RawValue>,
}

/// An answer as it goes over the wire.
#[derive(Debug, Clone)]
pub(crate) enum Rendered {
    Whole(Bytes),
    Chunks(Vec<Bytes>),
}

impl Answer {
    /// The answer of a turn. A turn that says nothing and calls nothing says a little.
    pub(crate) fn new(turn: &Turn, number: u64, model: &str, request_bytes: usize) -> Self {
        let mut parts = Vec::new();
        parts.extend(turn.reasoning.clone().map(Part::Reasoning));
        parts.extend(turn.said().map(Part::Text));
        for (index, call) in turn.calls.iter().enumerate() {
            let id = format!("{number:016x}{index:04x}");
            parts.push(Part::Call(Call { id, tool: call.tool.clone(), args: call.args.clone() }));
        }
        if parts.is_empty() {
            parts.push(Part::Text("All done. Is there anything else?".to_owned()));
        }
        let usage = turn.usage.unwrap_or_else(|| estimate(&parts, request_bytes));
        Self { number, model: model.to_owned(), parts, usage }
    }

    /// An id with this prefix.
    pub(crate) fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:024x}", self.number)
    }

    /// All that is said.
    pub(crate) fn text(&self) -> Option<&str> {
        self.parts
            .iter()
            .find_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
    }

    /// All that is thought.
    pub(crate) fn reasoning(&self) -> Option<&str> {
        self.parts
            .iter()
            .find_map(|part| if let Part::Reasoning(text) = part { Some(text.as_str()) } else { None })
    }

    /// The tools that are called.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
    }

    /// Whether the model waits for a tool.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }
}

impl Call {
    /// The arguments as `OpenAI` and streams have them: JSON text, or any text where the script has a string.
    pub(crate) fn args_text(&self) -> String {
        serde_json::from_str::<String>(self.args.get()).unwrap_or_else(|_| self.args.get().to_owned())
    }
}

/// About four bytes are a token.
fn estimate(parts: &[Part], request_bytes: usize) -> Usage {
    let tokens = |bytes: usize| bytes.div_ceil(4).max(1) as u64;
    let mut usage = Usage { input: tokens(request_bytes), ..Usage::default() };
    for part in parts {
        match part {
            Part::Reasoning(text) => usage.reasoning += tokens(text.len()),
            Part::Text(text) => usage.output += tokens(text.len()),
            Part::Call(call) => usage.output += tokens(call.tool.len() + call.args.get().len()),
        }
    }
    usage
}

/// A text in the pieces in which models give it: a word with the space before it, and long words in parts.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    const LONGEST: usize = 16;
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut seen_word = false;
    for (at, letter) in text.char_indices() {
        let ends_word = letter.is_whitespace() && seen_word;
        if ends_word || at - start >= LONGEST {
            pieces.push(&text[start..at]);
            start = at;
            seen_word = false;
        }
        seen_word |= !letter.is_whitespace();
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::{Answer, Part, pieces};
    use crate::turn::{Turn, Usage};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_pieces_of_a_text_make_the_text(text in ".{0,200}") {
            prop_assert_eq!(pieces(&text).concat(), text);
        }
    }

    #[test]
    fn a_piece_is_a_word_with_its_space_or_part_of_a_long_one() {
        assert_eq!(pieces("I see  two"), ["I", " see", "  two"]);
        assert_eq!(pieces("aaaaaaaaaaaaaaaaaaaa").len(), 2);
        assert_eq!(pieces(""), [""]);
    }

    #[test]
    fn calls_of_all_answers_have_ids_of_their_own() {
        let turn = Turn::call("f", "{}").and_call("g", "{}");
        let ids = |number| -> Vec<String> {
            Answer::new(&turn, number, "m", 0).calls().map(|call| call.id.clone()).collect()
        };
        assert_ne!(ids(1)[0], ids(1)[1]);
        assert_ne!(ids(1)[0], ids(2)[0]);
    }

    #[test]
    fn usage_is_what_the_script_says_or_an_estimate() {
        let usage = Usage { input: 3, ..Usage::default() };
        assert_eq!(Answer::new(&Turn::text("x").usage(usage), 0, "m", 400).usage, usage);
        let estimated = Answer::new(&Turn::text("12345678"), 0, "m", 400).usage;
        assert_eq!((estimated.input, estimated.output), (100, 2));
    }

    #[test]
    fn an_empty_turn_says_a_little() {
        assert!(matches!(Answer::new(&Turn::default(), 0, "m", 0).parts[..], [Part::Text(_)]));
    }
}
