//! The Responses API: whole responses, which also come with the last event of a stream.

use serde::Deserialize;

use super::Scribe;
use crate::Usage;
use crate::content;
use crate::json::{Cursor, Json, string};

/// A response.
#[derive(Deserialize)]
pub(crate) struct Response<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<Json<'a>>,
    #[serde(borrow)]
    pub(crate) model: Option<Json<'a>>,
    #[serde(borrow)]
    status: Option<Json<'a>>,
    #[serde(borrow)]
    output: Option<Json<'a>>,
    #[serde(borrow)]
    usage: Option<Json<'a>>,
}

/// One item of the output.
#[derive(Deserialize)]
pub(crate) struct Item<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Option<Json<'a>>,
    #[serde(borrow)]
    pub(crate) id: Option<Json<'a>>,
    #[serde(borrow)]
    call_id: Option<Json<'a>>,
    #[serde(borrow)]
    name: Option<Json<'a>>,
    #[serde(borrow)]
    arguments: Option<Json<'a>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
    #[serde(borrow)]
    action: Option<Json<'a>>,
    #[serde(borrow)]
    content: Option<Json<'a>>,
    #[serde(borrow)]
    summary: Option<Json<'a>>,
}

pub(crate) fn read_whole(body: &str, scribe: &mut Scribe) -> Option<()> {
    let response: Response<'_> = serde_json::from_str(body).ok()?;
    response.read_frame(scribe);
    let mut cursor = Cursor::new(response.output?.get());
    cursor.open(b'[').ok()?;
    while cursor.has_element(b']').ok()? {
        let item: Item<'_> = cursor.value().ok()?;
        item.read_words(scribe);
        item.read_call(scribe);
    }
    Some(())
}

impl Response<'_> {
    /// Everything but the output.
    pub(crate) fn read_frame(&self, scribe: &mut Scribe) {
        scribe.identify(self.id, self.model);
        scribe.ended(self.status);
        if let Some(usage) = self.usage.and_then(Usage::openai) {
            scribe.answer.usage = Some(usage);
        }
    }
}

impl Item<'_> {
    /// The words of an item that came whole. What is wrong with them is for the client to find out.
    fn read_words(&self, scribe: &mut Scribe) {
        let is_thought = self.kind.and_then(string).as_deref() == Some("reasoning");
        for words in [self.summary, self.content].into_iter().flatten() {
            drop(content::each(words, &mut |block| match block.said() {
                Some(text) if is_thought => scribe.thought(text),
                Some(text) => scribe.said(text),
                None => {}
            }));
        }
    }

    /// The call of an item, if the client is to run it: only then the result has an id to name.
    pub(crate) fn read_call(&self, scribe: &mut Scribe) {
        let kind = self.kind.and_then(string).unwrap_or_default();
        let (Some(own_name), Some(_)) = (kind.strip_suffix("_call"), self.call_id) else { return };
        let call = scribe.call(self.call_id, self.name);
        if let Some(call) = scribe.answer.calls.get_mut(call).filter(|call| call.tool.is_empty()) {
            own_name.clone_into(&mut call.tool);
        }
        if let Some(args) = self.arguments.or(self.input).or(self.action) {
            scribe.arguments(call, args);
        }
    }
}
