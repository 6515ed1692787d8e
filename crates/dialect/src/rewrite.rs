//! Another result in place of one that a request carries, and other words in place of the last ones from outside.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{string, words};
use crate::splice::{Object, Splice, quoted};
use crate::written::{Called, Part, Returned};
use crate::{Dialect, Speaker, read_request};

/// The body with another result of its `nth` call, counted from 0 over the whole transcript. All other bytes stay.
///
/// `None` when the body cannot be read, or holds no result of that call.
///
/// ```
/// use loopbreaker_dialect::{Dialect, with_result};
/// let body = br#"{"messages":[
///   {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]},
///   {"role":"tool","tool_call_id":"c1","content":"nothing"}]}"#;
/// let edited = with_result(Dialect::Chat, body, 0, "a.txt").expect("the result is there");
/// assert!(String::from_utf8_lossy(&edited).contains(r#""tool_call_id":"c1","content":"a.txt"}"#));
/// assert_eq!(with_result(Dialect::Chat, body, 1, "a.txt"), None);
/// ```
pub fn with_result(dialect: Dialect, body: &[u8], nth: usize, content: &str) -> Option<Vec<u8>> {
    let mut calls = Calls::default();
    let mut place = None;
    let read = read_request(dialect, body, None, &mut |message| {
        message.each_part(&mut |part| match part {
            Part::Called(call) => calls.add(&call),
            Part::Returned(returned) if calls.answered_by(&returned) == Some(nth) => {
                place = returned.result.and_then(|result| place_of(body, result.get()));
            }
            _ => {}
        });
    });
    read.ok()?;
    let put = match dialect {
        // Gemini takes an object there, and nothing else.
        Dialect::Gemini => format!("{{\"result\":{}}}", quoted(content)),
        Dialect::Chat | Dialect::Responses | Dialect::Anthropic => quoted(content),
    };
    Splice::apply(&[Splice::replace(place?, put)], str::from_utf8(body).ok()?)
}

/// The body with other words in the last message from outside. All other bytes stay.
///
/// ```
/// use loopbreaker_dialect::{Dialect, with_last_words};
/// let body = br#"{"messages":[{"role":"user","content":[{"type":"text","text":"try again"}]}]}"#;
/// let edited = with_last_words(Dialect::Anthropic, body, "stop").expect("there are words");
/// assert_eq!(edited, br#"{"messages":[{"role":"user","content":"stop"}]}"#);
/// ```
pub fn with_last_words(dialect: Dialect, body: &[u8], content: &str) -> Option<Vec<u8>> {
    let mut last = None;
    let read = read_request(dialect, body, None, &mut |message| {
        if message.speaker == Speaker::Outside {
            last = Some(message.span);
        }
    });
    read.ok()?;
    let (text, last) = (str::from_utf8(body).ok()?, last?);
    let quoted = quoted(content);
    // An input of the Responses API may be a string and nothing more.
    if text.get(last.clone())?.starts_with('"') {
        return Splice::apply(&[Splice::replace(last, quoted)], text);
    }
    let (member, put) = match dialect {
        Dialect::Gemini => ("parts", format!("[{{\"text\":{quoted}}}]")),
        Dialect::Chat | Dialect::Responses | Dialect::Anthropic => ("content", quoted),
    };
    let place = Object::at(text, last, &[member])?.get(member)?;
    Splice::apply(&[Splice::replace(place, put)], text)
}

/// The calls of a transcript in order, and which of them have a result.
#[derive(Default)]
struct Calls<'a> {
    calls: Vec<Waiting<'a>>,
}

struct Waiting<'a> {
    id: Option<Cow<'a, str>>,
    tool: Cow<'a, str>,
    is_answered: bool,
}

impl<'a> Calls<'a> {
    fn add(&mut self, call: &Called<'a>) {
        let is_answered = call.waits_for.is_none();
        self.calls.push(Waiting { id: call.waits_for.clone(), tool: call.tool.clone(), is_answered });
    }

    /// The call that a result answers: the one of its id, else the first open one of its tool, else the first open one.
    fn answered_by(&mut self, returned: &Returned<'a>) -> Option<usize> {
        let id = returned.id.map(words).filter(|id| !id.is_empty());
        let tool = returned.tool.and_then(string);
        let mut open = self.calls.iter().enumerate().filter(|(_, call)| !call.is_answered);
        let fits = |call: &Waiting<'_>| match (&id, &tool) {
            (Some(id), _) => call.id.as_ref() == Some(id),
            (None, Some(tool)) => call.tool == *tool,
            (None, None) => true,
        };
        let (index, _) = open.find(|(_, call)| fits(call))?;
        self.calls[index].is_answered = true;
        Some(index)
    }
}

/// Where a part of the body stands in it.
fn place_of(body: &[u8], part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    let place = start..start + part.len();
    (body.get(place.clone())? == part.as_bytes()).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::{with_last_words, with_result};
    use crate::Dialect;

    fn rewritten(dialect: Dialect, body: &str, nth: usize) -> String {
        let edited = with_result(dialect, body.as_bytes(), nth, "it says \"no\"").expect("a result");
        String::from_utf8(edited).expect("text")
    }

    #[test]
    fn the_result_of_a_call_is_replaced_in_each_dialect_and_nothing_else() {
        let calls = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"x","arguments":"{}"}}]}"#;
        let chat = format!(
            r#"{{"messages":[{calls},{{"role":"tool","tool_call_id":"b","content":"two"}},{{"role":"tool","tool_call_id":"a","content":"one"}}],"n":1}}"#
        );
        let edited = rewritten(Dialect::Chat, &chat, 1);
        assert_eq!(edited, chat.replace(r#""two""#, r#""it says \"no\"""#));
        let anthropic = r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"x","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"old"}]}]}]}"#;
        let edited = rewritten(Dialect::Anthropic, anthropic, 0);
        assert_eq!(edited, anthropic.replace(r#"[{"type":"text","text":"old"}]"#, r#""it says \"no\"""#));
        let responses = r#"{"input":[{"type":"function_call","call_id":"c","name":"x","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"old"}]}"#;
        let edited = rewritten(Dialect::Responses, responses, 0);
        assert_eq!(edited, responses.replace(r#""old""#, r#""it says \"no\"""#));
        let gemini = r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"x","args":{}}},{"functionCall":{"name":"y","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"v":1}}},{"functionResponse":{"name":"y","response":{"v":2}}}]}]}"#;
        let edited = rewritten(Dialect::Gemini, gemini, 1);
        assert_eq!(edited, gemini.replace(r#"{"v":2}"#, r#"{"result":"it says \"no\""}"#));
    }

    #[test]
    fn the_last_words_from_outside_are_replaced_in_each_dialect() {
        let cases = [
            (
                Dialect::Chat,
                r#"{"messages":[{"role":"user","content":"old"},{"role":"assistant","content":"hm"}]}"#,
                r#""old""#,
                r#""new""#,
            ),
            (Dialect::Responses, r#"{"input":"old"}"#, r#""old""#, r#""new""#),
            (
                Dialect::Gemini,
                r#"{"contents":[{"role":"user","parts":[{"text":"old"}]}]}"#,
                r#""old""#,
                r#""new""#,
            ),
        ];
        for (dialect, body, old, new) in cases {
            let edited = with_last_words(dialect, body.as_bytes(), "new").expect("there are words");
            assert_eq!(String::from_utf8(edited).expect("text"), body.replace(old, new), "{dialect}");
        }
    }

    #[test]
    fn a_call_without_a_result_has_none_to_replace() {
        let body = br#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"x","input":{}}]}]}"#;
        assert_eq!(with_result(Dialect::Anthropic, body, 0, "x"), None);
        assert_eq!(with_result(Dialect::Anthropic, b"no json", 0, "x"), None);
        assert_eq!(with_last_words(Dialect::Anthropic, body, "x"), None);
    }
}
