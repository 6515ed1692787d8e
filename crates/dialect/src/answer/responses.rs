//! The Responses API: whole responses, which also come with the last event of a stream.

use serde::Deserialize;

use super::Scribe;
use crate::Usage;
use crate::content;
use crate::json::{Cursor, Json, string, words};
use crate::written::{Called, Form, Part, Returned, Written};

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
        let item = cursor.skip().ok()?;
        serde_json::from_str::<Item<'_>>(item.get()).ok()?.read_words(scribe);
        read_call(item, scribe);
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
}

/// The call of an item: one that the client is to run, which has a result still to come, or one that has run already,
/// with its result or with an item of its own behind it.
pub(crate) fn read_call(item: Json<'_>, scribe: &mut Scribe) {
    let Ok(written) = Written::read(&mut Cursor::new(item.get())) else { return };
    // An item that cannot be read calls nothing.
    let read = written.each_part(written.form(), &mut |part| match part {
        Part::Called(Called { waits_for: Some(id), tool, args, .. }) if written.form() == Form::Call => {
            let call = scribe.call_named(id.into_owned(), tool.into_owned());
            if let Some(args) = args {
                scribe.arguments(call, args.written);
            }
        }
        Part::Called(called) => scribe.ran(called),
        Part::Returned(Returned { id: Some(id), result, failed, .. }) => {
            scribe.returned(&words(id), result, failed);
        }
        _ => {}
    });
    drop(read);
}
