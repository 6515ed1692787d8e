//! A request as a span with the `GenAI` conventions.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use loopbreaker::Kind;

use super::provider::provider;
use crate::mask::mask;
use crate::part::Part;
use crate::record::{Check, Dialect, Record};

/// What a collector is told of a request.
#[derive(Debug)]
pub(super) struct Span<'r> {
    pub(super) trace_id: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent_id: Option<[u8; 8]>,
    pub(super) flags: u32,
    pub(super) name: String,
    pub(super) kind: u8,
    pub(super) start_nanos: u64,
    pub(super) end_nanos: u64,
    pub(super) attributes: Vec<(&'static str, Value<'r>)>,
    pub(super) is_error: bool,
}

/// An attribute's value.
#[derive(Debug, PartialEq)]
pub(super) enum Value<'r> {
    Text(Cow<'r, str>),
    Texts(Vec<&'static str>),
    Integer(i64),
    Number(f64),
    Truth(bool),
}

impl<'r> Span<'r> {
    /// A call from us to the provider: that is what the conventions look at, and what a caller's own span contains.
    const KIND_CLIENT: u8 = 3;
    /// A check that was done for another process, and one that is a part of a request of ours.
    const KIND_SERVER: u8 = 2;
    const KIND_INTERNAL: u8 = 1;

    /// Tells of a request. `newest_names` leaves out attributes that were renamed since.
    pub(super) fn of(record: &'r Record, trace_id: [u8; 16], id: [u8; 8], newest_names: bool) -> Self {
        let start = record.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            trace_id,
            id,
            parent_id: record.ids.map(|caller| caller.span_id),
            flags: flags(record.ids.is_some()),
            name: name(record),
            kind: Self::KIND_CLIENT,
            start_nanos: nanos(start),
            end_nanos: nanos(start.saturating_add(record.duration)),
            attributes: attributes(record, newest_names),
            is_error: record.status >= 400 || record.refusal.is_some(),
        }
    }

    /// Tells of a comparison by meaning.
    pub(super) fn of_check(check: &Check, parent_id: Option<[u8; 8]>, is_served: bool) -> Span<'static> {
        let start = check.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let known = |text: &'static str| Value::Text(Cow::Borrowed(text));
        let mut attributes = vec![("loopbreaker.check.result", known(check.result))];
        attributes.extend(check.reason.map(|reason| ("loopbreaker.check.reason", known(reason))));
        let similarity = check.similarity.map(|found| ("loopbreaker.check.similarity", Value::Number(found)));
        attributes.extend(similarity);
        Span {
            trace_id: check.context.trace_id,
            id: check.context.span_id,
            parent_id,
            flags: flags(is_served && parent_id.is_some()),
            name: "check_loop".to_owned(),
            kind: if is_served { Self::KIND_SERVER } else { Self::KIND_INTERNAL },
            start_nanos: nanos(start),
            end_nanos: nanos(start.saturating_add(check.took)),
            attributes,
            is_error: check.result == "degraded",
        }
    }
}

/// Sampled, and whether the parent is in another process.
const fn flags(has_caller: bool) -> u32 {
    const SAMPLED: u32 = 1;
    const KNOWS_WHETHER_REMOTE: u32 = 0x100;
    const IS_REMOTE: u32 = 0x200;
    if has_caller { SAMPLED | KNOWS_WHETHER_REMOTE | IS_REMOTE } else { SAMPLED | KNOWS_WHETHER_REMOTE }
}

/// The name of the operation, where the dialect is one of a model.
const fn operation(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Anthropic => Some("chat"),
        Dialect::Gemini => Some("generate_content"),
        Dialect::Other => None,
    }
}

/// `chat gpt-4o`. A request that is passed through is named by its method alone, since paths are without number.
fn name(record: &Record) -> String {
    match (operation(record.dialect), &record.model) {
        (Some(operation), Some(model)) => format!("{operation} {}", mask(model)),
        (Some(operation), None) => operation.to_owned(),
        (None, _) => mask(&record.method).into_owned(),
    }
}

fn attributes<'r>(record: &'r Record, newest_names: bool) -> Vec<(&'static str, Value<'r>)> {
    let mut list = Vec::with_capacity(32);
    let mut add = |name, value| list.push((name, value));
    let text = |text: &'r str| Value::Text(mask(text));
    let known = |text: &'static str| Value::Text(Cow::Borrowed(text));

    if let Some(operation) = operation(record.dialect) {
        add("gen_ai.operation.name", known(operation));
    }
    if let Some(provider) = provider(record.dialect, &record.upstream) {
        add("gen_ai.provider.name", known(provider));
        if !newest_names {
            add("gen_ai.system", known(provider));
        }
    }
    if let Some(model) = &record.model {
        add("gen_ai.request.model", text(model));
    }
    if let Some(model) = &record.response_model {
        add("gen_ai.response.model", text(model));
    }
    if record.stream {
        add("gen_ai.request.stream", Value::Truth(true));
    }
    if let (true, Some(first)) = (record.stream, record.first_chunk) {
        add("gen_ai.response.time_to_first_chunk", Value::Number(first.as_secs_f64()));
    }
    if let Some(tokens) = record.tokens {
        // The conventions count what came from or went to a cache as input, and reasoning as output.
        add("gen_ai.usage.input_tokens", integer(tokens.read()));
        add("gen_ai.usage.output_tokens", integer(tokens.written()));
        add("gen_ai.usage.cache_read.input_tokens", integer(tokens.cache_read));
        add("gen_ai.usage.cache_creation.input_tokens", integer(tokens.cache_write));
        add("gen_ai.usage.reasoning.output_tokens", integer(tokens.reasoning));
        add("loopbreaker.usage.estimated", Value::Truth(record.tokens_estimated));
        add("loopbreaker.cost_usd", Value::Number(record.cost_micros as f64 / 1e6));
        add("loopbreaker.price_unknown", Value::Truth(!record.cost_known));
    }
    add("gen_ai.conversation.id", text(&record.session));
    add("session.id", text(&record.session));
    add("gen_ai.agent.id", text(&record.agent));
    add("gen_ai.agent.name", text(&record.agent));
    add("user.id", text(&record.tenant));
    add("http.request.method", text(&record.method));
    add("url.path", text(record.bare_path()));
    add("http.response.status_code", Value::Integer(record.status.into()));
    let (host, port) = host_and_port(&record.upstream);
    add("server.address", text(host));
    if let Some(port) = port {
        add("server.port", Value::Integer(port.into()));
    }
    add("loopbreaker.verdict", known(record.verdict.as_str()));
    if !record.findings.is_empty() {
        add("loopbreaker.finding.kinds", Value::Texts(kinds(record)));
    }
    add("loopbreaker.overhead_us", integer(micros(record.overhead)));
    if record.held > Duration::ZERO {
        add("loopbreaker.held_us", integer(micros(record.held)));
    }
    if !record.degraded.is_empty() {
        add("loopbreaker.degraded", Value::Texts(record.degraded.iter().map(Part::as_str).collect()));
    }
    if let Some(age) = record.cache_age {
        add("loopbreaker.cache.age_s", integer(age.as_secs()));
    }
    match record.refusal {
        Some(refusal) => add("error.type", known(refusal)),
        None if record.status >= 400 => add("error.type", Value::Text(record.status.to_string().into())),
        None => {}
    }
    list
}

/// Each kind once, in the order of the findings.
fn kinds(record: &Record) -> Vec<&'static str> {
    let mut kinds: Vec<Kind> = Vec::new();
    for finding in &record.findings {
        if !kinds.contains(&finding.kind) {
            kinds.push(finding.kind);
        }
    }
    kinds.into_iter().map(Kind::as_str).collect()
}

/// Parts `host:port`; an address of IP version 6 stands in brackets when a port follows.
fn host_and_port(upstream: &str) -> (&str, Option<u16>) {
    match upstream.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            port.parse().map_or((upstream, None), |port| (host, Some(port)))
        }
        _ => (upstream, None),
    }
}

fn integer(number: u64) -> Value<'static> {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(in crate::spans) mod tests;
