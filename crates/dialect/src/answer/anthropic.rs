//! Anthropic: whole messages.

use serde::Deserialize;

use super::Scribe;
use crate::Usage;
use crate::content;
use crate::json::Json;

/// A message of the model.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<Json<'a>>,
    #[serde(borrow)]
    pub(crate) model: Option<Json<'a>>,
    #[serde(borrow)]
    content: Option<Json<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Json<'a>>,
    #[serde(borrow)]
    pub(crate) usage: Option<Json<'a>>,
}

pub(crate) fn read_whole(body: &str, scribe: &mut Scribe) -> Option<()> {
    let message: Message<'_> = serde_json::from_str(body).ok()?;
    scribe.identify(message.id, message.model);
    scribe.ended(message.stop_reason);
    scribe.answer.usage = message.usage.and_then(|usage| Usage::anthropic(None, usage));
    content::each(message.content?, &mut |block| match &*block.kind() {
        "tool_use" => {
            let call = scribe.call(block.id, block.name);
            if let Some(input) = block.input {
                scribe.arguments(call, input);
            }
        }
        "thinking" => {
            if let Some(thinking) = block.thinking {
                scribe.thought(thinking);
            }
        }
        _ => {
            if let Some(text) = block.said() {
                scribe.said(text);
            }
        }
    })
    .ok()
}
