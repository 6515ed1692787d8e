//! The events that end a stream of the Responses API validly.

use super::{OpenItem, Part, PartKind, Stream};
use crate::Answer;
use crate::splice::{Object, Splice, quoted};

impl Stream {
    /// Everything that is open ends, then the response does, incomplete.
    pub(in crate::stream) fn closing(&self, answer: &Answer) -> String {
        let mut events = Events { text: String::new(), sequence: self.sequence };
        let mut output = self.done.clone();
        if let Some(item) = &self.open {
            item.parts.iter().filter(|part| part.is_open).for_each(|part| part.end(item, &mut events));
            let whole = item.whole();
            let fields = format!(r#""output_index":{},"item":{whole}"#, item.index);
            events.add("response.output_item.done", &fields);
            output.push(whole);
        }
        let response = self.whole(&output, answer);
        events.add("response.incomplete", &format!(r#""response":{response}"#));
        // The Python SDK's helper takes its final response from this event alone; the status in it stays what it is.
        events.add("response.completed", &format!(r#""response":{response}"#));
        events.text
    }

    /// The response as it was created, with what has become of it.
    fn whole(&self, output: &[String], answer: &Answer) -> String {
        let text = |value: &Option<String>| quoted(value.as_deref().unwrap_or_default());
        let (id, model) = (text(&answer.id), text(&answer.model));
        let plain = || format!(r#"{{"id":{id},"object":"response","model":{model}}}"#);
        let mut response = self.response.clone().unwrap_or_else(plain);
        let fields = [
            ("status", "\"incomplete\"".to_owned()),
            ("incomplete_details", r#"{"reason":"max_output_tokens"}"#.to_owned()),
            ("output", format!("[{}]", output.join(","))),
        ];
        for (name, value) in fields {
            let Some(object) = Object::at(&response, 0..response.len(), &[name]) else { continue };
            let change = match object.get(name) {
                Some(place) => Splice::replace(place, value),
                None => object.put(name, &value),
            };
            let edited = Splice::apply(&[change], &response);
            response = edited.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(response);
        }
        response
    }
}

impl OpenItem {
    fn whole(&self) -> String {
        let parts = |kinds: &[PartKind]| {
            let parts = self.parts.iter().filter(|part| kinds.contains(&part.kind));
            parts.map(Part::whole).collect::<Vec<_>>().join(",")
        };
        let id = quoted(&self.id);
        let content = parts(&[PartKind::Said, PartKind::Thought]);
        if self.kind == "reasoning" {
            let summary = parts(&[PartKind::Summary]);
            let content =
                if content.is_empty() { String::new() } else { format!(r#","content":[{content}]"#) };
            return format!(
                r#"{{"id":{id},"type":"reasoning","status":"incomplete","summary":[{summary}]{content}}}"#
            );
        }
        format!(
            r#"{{"id":{id},"type":"message","status":"incomplete","role":"assistant","content":[{content}]}}"#
        )
    }
}

impl Part {
    fn whole(&self) -> String {
        let text = quoted(&self.text);
        match self.kind {
            PartKind::Said => {
                format!(r#"{{"type":"output_text","annotations":[],"logprobs":[],"text":{text}}}"#)
            }
            PartKind::Thought => format!(r#"{{"type":"reasoning_text","text":{text}}}"#),
            PartKind::Summary => format!(r#"{{"type":"summary_text","text":{text}}}"#),
        }
    }

    /// The end of the text, and that of the part around it.
    fn end(&self, item: &OpenItem, events: &mut Events) {
        let (of_text, of_part, index_name, more) = match self.kind {
            PartKind::Said => (
                "response.output_text.done",
                "response.content_part.done",
                "content_index",
                ",\"logprobs\":[]",
            ),
            PartKind::Thought => {
                ("response.reasoning_text.done", "response.content_part.done", "content_index", "")
            }
            PartKind::Summary => (
                "response.reasoning_summary_text.done",
                "response.reasoning_summary_part.done",
                "summary_index",
                "",
            ),
        };
        let place = format!(
            r#""item_id":{},"output_index":{},"{index_name}":{}"#,
            quoted(&item.id),
            item.index,
            self.index
        );
        events.add(of_text, &format!(r#"{place},"text":{}{more}"#, quoted(&self.text)));
        events.add(of_part, &format!(r#"{place},"part":{}"#, self.whole()));
    }
}

/// Events that go on counting.
struct Events {
    text: String,
    sequence: u64,
}

impl Events {
    fn add(&mut self, kind: &str, fields: &str) {
        self.sequence += 1;
        let number = self.sequence.to_string();
        self.text.extend(["event: ", kind, "\ndata: {\"type\":\"", kind, "\",\"sequence_number\":", &number]);
        self.text.extend([",", fields, "}\n\n"]);
    }
}
