//! `OpenAI` Responses: `POST /v1/responses`.

use bytes::Bytes;

use crate::answer::{Answer, CREATED, Call, Part, pieces};
use crate::json::{Json, object};
use crate::question::Question;
use crate::turn::Usage;

/// The answer in one piece.
pub(crate) fn whole(answer: &Answer, question: &Question<'_>) -> Bytes {
    response(answer, question, "completed", items(answer)).pretty().into()
}

/// The answer as a stream of numbered events: each item is added, filled and done in turn.
pub(crate) fn events(answer: &Answer, question: &Question<'_>) -> Vec<Bytes> {
    let mut stream = Stream::default();
    let begun = || response(answer, question, "in_progress", vec![]);
    stream.push("response.created", vec![("response", begun())]);
    stream.push("response.in_progress", vec![("response", begun())]);
    for (index, part) in (0u64..).zip(&answer.parts) {
        match part {
            Part::Reasoning(text) => stream.reasoning(&reasoning_id(answer), index, text),
            Part::Text(text) => stream.message(&answer.id("msg_"), index, text),
            Part::Call(call) => stream.call(index, call),
        }
    }
    let done = response(answer, question, "completed", items(answer));
    stream.push("response.completed", vec![("response", done)]);
    stream.events
}

/// The id by which the next request may refer to this answer.
pub(crate) fn id_of(answer: &Answer) -> String {
    answer.id("resp_")
}

/// The id by which the output of a call refers to it.
pub(crate) fn call_id(call: &Call) -> String {
    format!("call_{}", call.id)
}

#[derive(Default)]
struct Stream {
    events: Vec<Bytes>,
}

type Fields = Vec<(&'static str, Json)>;

impl Stream {
    fn push(&mut self, name: &'static str, fields: Fields) {
        let number = self.events.len() as u64;
        let mut all = vec![("type", name.into()), ("sequence_number", number.into())];
        all.extend(fields);
        let data = Json::Object(all).compact();
        self.events.push(format!("event: {name}\ndata: {data}\n\n").into());
    }

    /// An event about an item: `before` stands before its place, `after` behind it.
    fn push_about(&mut self, name: &'static str, item: &str, index: u64, after: Fields) {
        let mut fields = vec![("item_id", item.into()), ("output_index", index.into())];
        fields.extend(after);
        self.push(name, fields);
    }

    fn message(&mut self, id: &str, index: u64, text: &str) {
        let place = |rest: Fields| [vec![("content_index", Json::from(0u64))], rest].concat();
        self.item("response.output_item.added", index, message(id, "in_progress", vec![]));
        let part = ("part", output_text(""));
        self.push_about("response.content_part.added", id, index, place(vec![part]));
        for piece in pieces(text) {
            let delta = vec![("delta", piece.into()), ("logprobs", Json::List(vec![]))];
            self.push_about("response.output_text.delta", id, index, place(delta));
        }
        let whole = vec![("text", text.into()), ("logprobs", Json::List(vec![]))];
        self.push_about("response.output_text.done", id, index, place(whole));
        let part = ("part", output_text(text));
        self.push_about("response.content_part.done", id, index, place(vec![part]));
        self.item("response.output_item.done", index, message(id, "completed", vec![output_text(text)]));
    }

    fn reasoning(&mut self, id: &str, index: u64, text: &str) {
        let place = |rest: Fields| [vec![("summary_index", Json::from(0u64))], rest].concat();
        self.item("response.output_item.added", index, reasoning(id, vec![]));
        let part = ("part", summary_text(""));
        self.push_about("response.reasoning_summary_part.added", id, index, place(vec![part]));
        for piece in pieces(text) {
            let delta = place(vec![("delta", piece.into())]);
            self.push_about("response.reasoning_summary_text.delta", id, index, delta);
        }
        let whole = place(vec![("text", text.into())]);
        self.push_about("response.reasoning_summary_text.done", id, index, whole);
        let part = ("part", summary_text(text));
        self.push_about("response.reasoning_summary_part.done", id, index, place(vec![part]));
        self.item("response.output_item.done", index, reasoning(id, vec![summary_text(text)]));
    }

    fn call(&mut self, index: u64, call: &Call) {
        let id = item_id(call);
        let args = call.args_text();
        self.item("response.output_item.added", index, function_call(call, "in_progress", ""));
        for piece in pieces(&args) {
            let delta = vec![("delta", piece.into())];
            self.push_about("response.function_call_arguments.delta", &id, index, delta);
        }
        let whole = vec![("arguments", args.as_str().into())];
        self.push_about("response.function_call_arguments.done", &id, index, whole);
        self.item("response.output_item.done", index, function_call(call, "completed", &args));
    }

    fn item(&mut self, name: &'static str, index: u64, item: Json) {
        self.push(name, vec![("output_index", index.into()), ("item", item)]);
    }
}

fn items(answer: &Answer) -> Vec<Json> {
    let item = |part: &Part| match part {
        Part::Reasoning(text) => reasoning(&reasoning_id(answer), vec![summary_text(text)]),
        Part::Text(text) => message(&answer.id("msg_"), "completed", vec![output_text(text)]),
        Part::Call(call) => function_call(call, "completed", &call.args_text()),
    };
    answer.parts.iter().map(item).collect()
}

fn response(answer: &Answer, question: &Question<'_>, status: &'static str, output: Vec<Json>) -> Json {
    let is_done = status == "completed";
    let or = |given: Option<&serde_json::value::RawValue>, default: Json| given.map_or(default, Json::from);
    object! {
        "id": id_of(answer),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "completed_at": is_done.then_some(CREATED + 1),
        "error": Json::Null,
        "incomplete_details": Json::Null,
        "instructions": question.instructions,
        "max_output_tokens": question.max_output_tokens,
        "max_tool_calls": Json::Null,
        "model": answer.model.as_str(),
        "output": output,
        "parallel_tool_calls": or(question.parallel_tool_calls, true.into()),
        "previous_response_id": question.previous_response_id.clone(),
        "prompt_cache_key": question.prompt_cache_key,
        "reasoning": object! { "effort": Json::Null, "summary": Json::Null },
        "safety_identifier": Json::Null,
        "service_tier": "default",
        "store": or(question.store, true.into()),
        "temperature": or(question.temperature, 1.0.into()),
        "text": object! { "format": object! { "type": "text" }, "verbosity": "medium" },
        "tool_choice": or(question.tool_choice, "auto".into()),
        "tools": or(question.tools, Json::List(vec![])),
        "top_logprobs": 0u64,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": is_done.then(|| usage(&answer.usage)),
        "user": Json::Null,
        "metadata": or(question.metadata, Json::Object(vec![])),
    }
}

fn message(id: &str, status: &str, content: Vec<Json>) -> Json {
    object! { "id": id, "type": "message", "status": status, "content": content, "role": "assistant" }
}

fn output_text(text: &str) -> Json {
    object! { "type": "output_text", "annotations": Json::List(vec![]), "logprobs": Json::List(vec![]), "text": text }
}

fn reasoning(id: &str, summary: Vec<Json>) -> Json {
    object! { "id": id, "type": "reasoning", "summary": summary }
}

fn summary_text(text: &str) -> Json {
    object! { "type": "summary_text", "text": text }
}

fn function_call(call: &Call, status: &str, args: &str) -> Json {
    object! {
        "id": item_id(call),
        "type": "function_call",
        "status": status,
        "arguments": args,
        "call_id": call_id(call),
        "name": call.tool.as_str(),
    }
}

fn item_id(call: &Call) -> String {
    format!("fc_{}", call.id)
}

fn reasoning_id(answer: &Answer) -> String {
    answer.id("rs_")
}

fn usage(usage: &Usage) -> Json {
    let input = usage.input + usage.cache_read + usage.cache_write;
    let output = usage.output + usage.reasoning;
    object! {
        "input_tokens": input,
        "input_tokens_details": object! { "cached_tokens": usage.cache_read },
        "output_tokens": output,
        "output_tokens_details": object! { "reasoning_tokens": usage.reasoning },
        "total_tokens": input + output,
    }
}
