//! The Responses API: events around the items of an output.

mod closing;

use serde::Deserialize;

use super::template::Template;
use crate::answer::Scribe;
use crate::answer::responses::{Item, Response, read_call, read_whole};
use crate::json::{Json, push_unescaped};

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) complete: bool,
    /// The number of the last event.
    sequence: u64,
    /// The response as it was created.
    response: Option<String>,
    /// The items that are complete.
    done: Vec<String>,
    /// Whether any item, or any words of one, have come by themselves.
    has_items: bool,
    /// The item that has begun and not ended.
    open: Option<OpenItem>,
    /// Bytes of all that is kept for a valid end.
    kept: usize,
    /// The form of the last delta of words, and of which part they are.
    plain: Option<(Template, PartKind, u64)>,
}

/// An item whose end has not come.
#[derive(Debug)]
struct OpenItem {
    id: String,
    kind: String,
    index: u64,
    /// Its parts, of which the last may be open.
    parts: Vec<Part>,
}

/// A part of an item.
#[derive(Debug)]
struct Part {
    kind: PartKind,
    index: u64,
    text: String,
    is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    /// `output_text`
    Said,
    /// `reasoning_text`
    Thought,
    /// `summary_text`
    Summary,
}

/// So much is kept for a valid end; a stream that would need more is not cut.
const MAX_KEPT: usize = 2 << 20;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Json<'a>,
    #[serde(borrow)]
    sequence_number: Option<Json<'a>>,
    output_index: Option<u64>,
    #[serde(alias = "summary_index")]
    content_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Json<'a>>,
    #[serde(borrow)]
    response: Option<Json<'a>>,
    #[serde(borrow)]
    item: Option<Json<'a>>,
    #[serde(borrow)]
    part: Option<Json<'a>>,
    /// Bytes without a meaning that hide how long an event is.
    #[serde(borrow)]
    obfuscation: Option<Json<'a>>,
}

impl Stream {
    pub(super) fn hear(&mut self, data: &str, scribe: &mut Scribe) {
        if let Some((template, kind, index)) = &self.plain
            && let Some([words, number, _]) = template.values(data)
        {
            let (kind, index) = (*kind, *index);
            self.sequence = number.parse().unwrap_or(self.sequence);
            return self.write(kind, index, words, scribe);
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(data) else { return };
        let number = event.sequence_number.and_then(|number| number.get().parse().ok());
        self.sequence = number.unwrap_or(self.sequence);
        let kind = event.kind.inside().unwrap_or_default();
        let part = match kind {
            "response.output_text.delta" => Some(PartKind::Said),
            "response.reasoning_text.delta" => Some(PartKind::Thought),
            "response.reasoning_summary_text.delta" => Some(PartKind::Summary),
            _ => None,
        };
        match (part, event.delta) {
            (Some(part), Some(delta)) => {
                let index = event.content_index.unwrap_or_default();
                self.write(part, index, delta.inside().unwrap_or_default(), scribe);
                let values = [Some(delta), event.sequence_number, event.obfuscation];
                self.plain = Template::of(data, values).map(|template| (template, part, index));
            }
            (_, Some(delta)) => {
                // A refusal, or the arguments of a call, which are counted with the item that they are part of.
                scribe.is_under_way = true;
                if kind == "response.refusal.delta" {
                    scribe.said(delta);
                }
            }
            _ => self.hear_frame(kind, &event, scribe),
        }
    }

    /// Takes an event that begins or ends something.
    fn hear_frame(&mut self, kind: &str, event: &Event<'_>, scribe: &mut Scribe) {
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                if let Some(response) = event.response {
                    read_response(response, scribe);
                    self.keep(response.get(), scribe);
                    self.response = scribe.may_be_cut().then(|| response.get().to_owned());
                }
            }
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.begin(item, event.output_index.unwrap_or_default(), scribe);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.end(item, scribe);
                }
            }
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                let open = self.open.iter_mut().flat_map(|item| &mut item.parts);
                open.for_each(|part| part.is_open = false);
            }
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                if let Some(part) = event.part {
                    self.keep(part.get(), scribe);
                    self.begin_part(part, event.content_index.unwrap_or_default());
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.complete = true;
                if let Some(response) = event.response {
                    if self.has_items {
                        read_response(response, scribe);
                    } else {
                        // Some relays give all of it at the end, and nothing before. What is broken in it is for the client
                        // to find out, and nothing is left to be cut.
                        scribe.leave_whole();
                        read_whole(response.get(), scribe).unwrap_or_default();
                    }
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, item: Json<'_>, index: u64, scribe: &mut Scribe) {
        self.has_items = true;
        let Ok(item) = serde_json::from_str::<Item<'_>>(item.get()) else { return };
        let text = |value: Option<Json<'_>>| value.and_then(Json::inside).unwrap_or_default().to_owned();
        let (id, kind) = (text(item.id), text(item.kind));
        if self.open.is_some() {
            // Several items at once: their ends must come from the provider.
            scribe.leave_whole();
        }
        if !matches!(kind.as_str(), "message" | "reasoning") {
            // A call, whoever runs it.
            scribe.begin_anew();
            scribe.is_under_way = true;
        }
        self.open = Some(OpenItem { id, kind, index, parts: Vec::new() });
    }

    fn begin_part(&mut self, part: Json<'_>, index: u64) {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "type", borrow)]
            kind: Option<Json<'a>>,
        }
        let part = serde_json::from_str::<Kind<'_>>(part.get()).ok();
        let kind = match part.and_then(|part| part.kind).and_then(Json::inside) {
            Some("output_text") => PartKind::Said,
            Some("reasoning_text") => PartKind::Thought,
            Some("summary_text") => PartKind::Summary,
            _ => return,
        };
        if let Some(item) = &mut self.open {
            item.parts.push(Part { kind, index, text: String::new(), is_open: true });
        }
    }

    /// Takes the words of a part, which are kept while they may be needed for a valid end.
    fn write(&mut self, kind: PartKind, index: u64, inside: &str, scribe: &mut Scribe) {
        self.has_items = true;
        if scribe.may_be_cut() {
            self.keep(inside, scribe);
            let parts = self.open.iter_mut().flat_map(|item| &mut item.parts).rev();
            let mut open = parts.filter(|part| part.is_open && part.kind == kind && part.index == index);
            match open.next() {
                Some(part) => push_unescaped(inside, &mut part.text),
                // Words of nothing that has begun: no end of ours would fit.
                None => scribe.is_under_way = true,
            }
        }
        scribe.words(inside, kind != PartKind::Said);
    }

    fn end(&mut self, item: Json<'_>, scribe: &mut Scribe) {
        (self.open, self.has_items) = (None, true);
        scribe.is_under_way = false;
        read_call(item, scribe);
        self.keep(item.get(), scribe);
        if scribe.may_be_cut() {
            self.done.push(item.get().to_owned());
        }
    }

    /// Counts what has to be kept. What is not watched any more needs nothing.
    fn keep(&mut self, text: &str, scribe: &mut Scribe) {
        self.kept += text.len();
        if self.kept > MAX_KEPT {
            scribe.leave_whole();
        }
        if !scribe.may_be_cut() {
            (self.response, self.done, self.open) = (None, Vec::new(), None);
        }
    }
}

fn read_response(response: Json<'_>, scribe: &mut Scribe) {
    if let Ok(response) = serde_json::from_str::<Response<'_>>(response.get()) {
        response.read_frame(scribe);
    }
}
