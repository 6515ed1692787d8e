//! `otlp-json`: OpenTelemetry spans with `GenAI` attributes.

mod messages;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use loopbreaker::{Status, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::Output;
use crate::recent::Recent;
use crate::record::Record;
use crate::runs::Runs;
use crate::{Problem, Reader};
use loopbreaker_dialect::conversation::{Answer, CallName, Event, Held, Outcome, Who};
use loopbreaker_dialect::json::{Text, hash, words};
use messages::{Asked, Messages, Shown};

/// Reads export requests, one document or one per line. Spans are ordered by their start within each.
pub(crate) struct Otlp {
    runs: Runs<Asked>,
    /// The conversation of every recent trace: tool spans seldom name theirs, the spans around them do.
    conversations: Recent<Rc<str>>,
}

impl Otlp {
    pub(crate) fn new() -> Self {
        Self { runs: Runs::new(), conversations: Recent::default() }
    }
}

impl Reader for Otlp {
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem> {
        // Only the place of a span is kept, since what is read from it may be larger than the span itself.
        let mut starts: Vec<(u64, &RawValue)> = Vec::new();
        each_span(record, &mut |span| {
            let Some(deed) = Deed::of(record, span)? else { return Ok(()) };
            self.learn(&deed);
            if deed.is_call() || deed.is_answer() {
                starts.push((deed.start, span));
            }
            Ok(())
        })?;
        starts.sort_by_key(|(start, _)| *start);
        // Calls that have spans of their own, which say more of them than the model's answer does.
        let mut shown: HashMap<Rc<str>, Shown> = HashMap::new();
        // Until when the calls of a run take whose model has no spans of its own.
        let mut busy: HashMap<Rc<str>, u64> = HashMap::new();
        for (_, span) in &starts {
            let Some(deed) = Deed::of(record, span)?.filter(Deed::is_call) else { continue };
            let id = self.run_of(&deed, out.name());
            shown.entry(id).or_default().add(deed.call_id.as_deref(), deed.tool());
        }
        for (_, span) in starts {
            let Some(deed) = Deed::of(record, span)? else { continue };
            let id = self.run_of(&deed, out.name());
            let asked = &mut self.runs.get(&id, out).state;
            let until = busy.entry(Rc::clone(&id)).or_default();
            let mut events = Vec::new();
            if deed.is_answer() {
                let said = Messages::read(deed.said.as_deref());
                if asked.is_told_twice(&said, (deed.start, deed.end)) {
                    continue;
                }
                *until = u64::MAX;
                let shown = shown.entry(Rc::clone(&id)).or_default();
                events.extend(asked.returned(&Messages::read(deed.heard.as_deref())));
                events.push(deed.answer());
                events.extend(asked.events(said, shown));
            } else if let Some(call) = asked.take(deed.call_id.as_deref(), deed.tool()) {
                // The model's answer, which came with an earlier export, has told of the call already.
                events.push(deed.returned(call));
            } else {
                // Calls that overlap were asked for together, others one by one.
                if deed.start >= *until {
                    events.push(Event::Answer(Answer::default()));
                }
                *until = deed.end.max(deed.start.saturating_add(1)).max(*until);
                events.push(deed.call());
            }
            self.runs.take(&id, out, |take| events.into_iter().for_each(take));
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.runs.end_all(out);
    }
}

impl Otlp {
    fn learn(&mut self, deed: &Deed<'_>) {
        if let (Some(trace), Some(run)) = (deed.trace_hash(), &deed.run)
            && self.conversations.get(trace).is_none()
        {
            self.conversations.insert(trace, Rc::from(&**run));
        }
    }

    /// The conversation that is named, else that of the trace, else the trace itself.
    fn run_of(&self, deed: &Deed<'_>, name: &str) -> Rc<str> {
        let of_trace = || deed.trace_hash().and_then(|trace| self.conversations.get(trace)).map(Rc::clone);
        let named = deed.run.as_deref().map(Rc::from);
        named.or_else(of_trace).unwrap_or_else(|| Rc::from(deed.trace.as_deref().unwrap_or(name)))
    }
}

/// Visits the spans of one or of several exports.
fn each_span<'a>(
    record: Record<'a>,
    visit: &mut dyn FnMut(&'a RawValue) -> Result<(), Problem>,
) -> Result<(), Problem> {
    if record.is_array() {
        return record.each(record.text, |export: Export<'a>| export.each_span(record, visit));
    }
    record.parse::<Export<'a>>()?.each_span(record, visit)
}

#[derive(Deserialize)]
#[serde(expecting = "an export with `resourceSpans`")]
struct Export<'a> {
    #[serde(rename = "resourceSpans", alias = "resource_spans", borrow)]
    resource_spans: &'a RawValue,
}

impl<'a> Export<'a> {
    fn each_span(
        &self,
        record: Record<'a>,
        visit: &mut dyn FnMut(&'a RawValue) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        record.each(self.resource_spans.get(), |resource: ResourceSpans<'a>| {
            let Some(scopes) = resource.scope_spans else { return Ok(()) };
            record.each(scopes.get(), |scope: ScopeSpans<'a>| {
                scope.spans.map_or(Ok(()), |spans| record.each(spans.get(), &mut *visit))
            })
        })
    }
}

#[derive(Deserialize)]
struct ResourceSpans<'a> {
    #[serde(rename = "scopeSpans", alias = "scope_spans", borrow)]
    scope_spans: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ScopeSpans<'a> {
    #[serde(borrow)]
    spans: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(expecting = "a span")]
struct Span<'a> {
    #[serde(rename = "traceId", alias = "trace_id", borrow)]
    trace_id: Option<Text<'a>>,
    #[serde(rename = "startTimeUnixNano", alias = "start_time_unix_nano", borrow)]
    start: Option<&'a RawValue>,
    #[serde(rename = "endTimeUnixNano", alias = "end_time_unix_nano", borrow)]
    end: Option<&'a RawValue>,
    #[serde(borrow)]
    attributes: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<SpanStatus<'a>>,
}

#[derive(Deserialize)]
struct SpanStatus<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
}

/// A span that is a step, or the model's answer before it, or that names the conversation of its trace.
#[derive(Default)]
struct Deed<'a> {
    start: u64,
    end: u64,
    trace: Option<Cow<'a, str>>,
    run: Option<Cow<'a, str>>,
    status: Option<Status>,
    operation: Cow<'a, str>,
    agent: Option<Cow<'a, str>>,
    tool: Option<Cow<'a, str>>,
    call_id: Option<Cow<'a, str>>,
    args: Option<Cow<'a, str>>,
    result: Option<Cow<'a, str>>,
    /// The messages that the model was given, and those that it gave out, as JSON.
    heard: Option<Cow<'a, str>>,
    said: Option<Cow<'a, str>>,
    tokens: Option<u64>,
}

impl<'a> Deed<'a> {
    fn of(record: Record<'a>, span: &'a RawValue) -> Result<Option<Self>, Problem> {
        let span: Span<'a> = record.parse_part(span)?;
        let Some(attributes) = span.attributes else { return Ok(None) };
        let mut deed = Self::default();
        let mut session = None;
        record.each(attributes.get(), |Attribute { key, value }: Attribute<'a>| {
            match &*key.0 {
                "gen_ai.operation.name" => deed.operation = value.words().unwrap_or_default(),
                "gen_ai.conversation.id" => deed.run = value.words(),
                "session.id" => session = value.words(),
                "gen_ai.agent.name" => deed.agent = value.words(),
                "gen_ai.tool.name" => deed.tool = value.words(),
                "gen_ai.tool.call.id" => deed.call_id = value.words(),
                "gen_ai.tool.call.arguments" => deed.args = value.words(),
                "gen_ai.tool.call.result" => deed.result = value.words(),
                "gen_ai.input.messages" => deed.heard = value.words(),
                "gen_ai.output.messages" => deed.said = value.words(),
                "gen_ai.usage.input_tokens" | "gen_ai.usage.output_tokens" => {
                    let count = value.words().and_then(|words| words.parse::<u64>().ok()).unwrap_or_default();
                    deed.tokens = Some(deed.tokens.unwrap_or_default().saturating_add(count));
                }
                _ => {}
            }
            Ok(())
        })?;
        deed.run = deed.run.or(session);
        if !deed.is_call() && !deed.is_answer() && deed.run.is_none() {
            return Ok(None);
        }
        deed.trace = span.trace_id.map(|id| id.0);
        let nanos =
            |time: Option<&RawValue>| time.and_then(|time| words(time).parse().ok()).unwrap_or_default();
        (deed.start, deed.end) = (nanos(span.start), nanos(span.end));
        deed.status = match span.status.and_then(|status| status.code).map(words).as_deref() {
            Some("2" | "STATUS_CODE_ERROR") => Some(Status::Failure),
            Some("1" | "STATUS_CODE_OK") => Some(Status::Success),
            _ => None,
        };
        Ok(Some(deed))
    }

    fn trace_hash(&self) -> Option<u64> {
        self.trace.as_ref().map(|trace| hash(trace.as_bytes()))
    }

    fn is_call(&self) -> bool {
        self.operation == "execute_tool"
    }

    fn is_answer(&self) -> bool {
        matches!(&*self.operation, "chat" | "generate_content" | "text_completion")
    }

    fn tool(&self) -> &str {
        self.tool.as_deref().unwrap_or("unknown")
    }

    fn time(&self) -> Option<Timestamp> {
        (self.start > 0).then(|| Timestamp::from_millis(self.start / 1_000_000))
    }

    /// The call that its span tells of.
    fn call(self) -> Event<'a> {
        let (time, status) = (self.time(), self.status);
        let who = self.agent.map_or(Who::Answering, Who::Agent);
        let tool = Some(self.tool.unwrap_or(Cow::Borrowed("unknown")));
        let step = Held { who, tool, args: self.args, result: self.result, status, time, ..Held::default() };
        Event::Called { waits_for: None, step }
    }

    /// How a call ended that the model's answer told of.
    fn returned(self, call: String) -> Event<'a> {
        let call = CallName { id: Some(Cow::Owned(call)), tool: None };
        Event::Returned {
            call,
            outcome: Outcome { result: self.result, status: self.status, ..Outcome::default() },
        }
    }

    /// The answer that its span tells of, without what was said in it.
    fn answer(self) -> Event<'a> {
        let time = self.time();
        Event::Answer(Answer { id: None, agent: self.agent, time, tokens: self.tokens })
    }
}

#[derive(Deserialize)]
struct Attribute<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(default, borrow)]
    value: AttributeValue<'a>,
}

#[derive(Default, Deserialize)]
struct AttributeValue<'a> {
    #[serde(rename = "stringValue", alias = "string_value", borrow)]
    string: Option<&'a RawValue>,
    #[serde(rename = "intValue", alias = "int_value", borrow)]
    int: Option<&'a RawValue>,
    #[serde(rename = "doubleValue", alias = "double_value", borrow)]
    double: Option<&'a RawValue>,
    #[serde(rename = "boolValue", alias = "bool_value", borrow)]
    bool: Option<&'a RawValue>,
    #[serde(rename = "kvlistValue", alias = "kvlist_value", borrow)]
    list: Option<&'a RawValue>,
}

impl<'a> AttributeValue<'a> {
    fn words(&self) -> Option<Cow<'a, str>> {
        self.string.or(self.int).or(self.double).or(self.bool).or(self.list).map(words)
    }
}
