//! Anthropic: events around the blocks of a message.

use serde::Deserialize;

use super::template::Template;
use crate::answer::Scribe;
use crate::answer::anthropic::Message;
use crate::json::Json;
use crate::{Answer, Usage};

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) complete: bool,
    /// The index of the block that has begun and not ended.
    open: Option<u64>,
    /// The call whose arguments are coming in.
    call: Option<usize>,
    /// The form of the last delta of words, and whether they were thought.
    plain: Option<(Template, bool)>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Json<'a>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    usage: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Json<'a>>,
    #[serde(borrow)]
    thinking: Option<Json<'a>>,
    #[serde(borrow)]
    partial_json: Option<Json<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Json<'a>>,
    #[serde(borrow)]
    id: Option<Json<'a>>,
    #[serde(borrow)]
    name: Option<Json<'a>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
    #[serde(borrow)]
    text: Option<Json<'a>>,
}

impl Stream {
    pub(super) fn hear(&mut self, data: &str, scribe: &mut Scribe) {
        if let Some((template, is_thought)) = &self.plain
            && let Some([words, _, _]) = template.values(data)
        {
            scribe.words(words, *is_thought);
            return;
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(data) else { return };
        match event.kind.inside().unwrap_or_default() {
            "content_block_delta" => {
                if let Some(delta) = &event.delta {
                    self.hear_delta(delta, scribe);
                    let words = delta.text.or(delta.thinking);
                    let template = words.and_then(|words| Template::of(data, [Some(words), None, None]));
                    self.plain = template.map(|template| (template, delta.text.is_none()));
                }
            }
            "content_block_start" => {
                if scribe.is_under_way {
                    // A call that has not ended, and more behind it.
                    scribe.leave_whole();
                }
                self.open = event.index;
                if let Some(block) = &event.content_block {
                    self.begin(block, scribe);
                }
            }
            "content_block_stop" => {
                (self.open, self.call) = (None, None);
                scribe.is_under_way = false;
            }
            "message_start" => {
                if let Some(message) = &event.message {
                    scribe.identify(message.id, message.model);
                    report(message.usage, scribe);
                }
            }
            "message_delta" => {
                scribe.ended(event.delta.and_then(|delta| delta.stop_reason));
                report(event.usage, scribe);
            }
            "message_stop" => self.complete = true,
            _ => {}
        }
    }

    fn hear_delta(&self, delta: &Delta<'_>, scribe: &mut Scribe) {
        if let Some(text) = delta.text {
            scribe.said(text);
        } else if let Some(thinking) = delta.thinking {
            scribe.thought(thinking);
        } else if let Some(args) = delta.partial_json {
            scribe.arguments(self.call.unwrap_or(usize::MAX), args);
        }
    }

    fn begin(&mut self, block: &Block<'_>, scribe: &mut Scribe) {
        match block.kind.and_then(Json::inside).unwrap_or_default() {
            "tool_use" => {
                let call = scribe.call(block.id, block.name);
                // The input is empty at first and comes in pieces, but some servers give all of it here.
                if let Some(input) = block.input.filter(|input| !is_empty(*input)) {
                    scribe.arguments(call, input);
                }
                self.call = Some(call);
                scribe.is_under_way = true;
            }
            kind if kind.ends_with("tool_use") => {
                scribe.begin_anew();
                scribe.is_under_way = true;
            }
            _ => {
                if let Some(text) = block.text {
                    scribe.said(text);
                }
            }
        }
    }

    pub(super) fn closing(&self, answer: &Answer) -> String {
        let mut events = String::new();
        if let Some(index) = self.open {
            let stop = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
            events.extend(["event: content_block_stop\ndata: ", &stop, "\n\n"]);
        }
        // The real count would have come with the end. A token has about four bytes.
        let seen = answer.usage.unwrap_or_default().output;
        let output = seen.max(answer.text_bytes.div_ceil(4));
        // What was called before is whole, and is to be run: a client that believes otherwise would send it back without
        // its result.
        let reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
        let delta = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":{output}}}}}"#
        );
        events.extend(["event: message_delta\ndata: ", &delta, "\n\n"]);
        events.push_str("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        events
    }
}

fn report(usage: Option<Json<'_>>, scribe: &mut Scribe) {
    if let Some(usage) = usage.and_then(|usage| Usage::anthropic(scribe.answer.usage, usage)) {
        scribe.answer.usage = Some(usage);
    }
}

fn is_empty(object: Json<'_>) -> bool {
    object.get().strip_prefix('{').is_some_and(|rest| rest.trim_ascii_start() == "}")
}
