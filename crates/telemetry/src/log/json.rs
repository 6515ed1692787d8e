//! One JSON object per line.

use std::fmt;
use std::io::Write;
use std::time::{Duration, SystemTime};

use super::clock::push_moment;
use super::plain::push_quoted;
use super::{Event, Level};
use crate::decimal::Decimal;
use crate::record::{FindingNote, Record, Tokens};
use crate::trace_context::Hex;

/// Appends the line of a request. Fields that would say nothing are left out, except those that every line has.
pub(super) fn push_request(line: &mut Vec<u8>, record: &Record) {
    let mut object = Object::line(line, record.at, level_of(record));
    object.known("event", "request");
    object.text("tenant", &record.tenant);
    object.text("agent", &record.agent);
    object.text("session", &record.session);
    object.known("dialect", record.dialect.as_str());
    object.text("method", &record.method);
    object.text("path", record.bare_path());
    record.model.iter().for_each(|model| object.text("model", model));
    record.response_model.iter().for_each(|model| object.text("response_model", model));
    object.text("upstream", &record.upstream);
    object.value("status", record.status);
    object.known("verdict", record.verdict.as_str());
    object.list("findings", &record.findings, push_finding);
    if record.is_cut {
        object.value("cut", true);
    }
    if let Some(tokens) = record.tokens {
        object.key("tokens");
        push_tokens(object.line, tokens);
        if record.tokens_estimated {
            object.value("tokens_estimated", true);
        }
    }
    object.value("cost_usd", Decimal { units: record.cost_micros, digits: 6 });
    if !record.cost_known {
        object.value("price_unknown", true);
    }
    object.value("stream", record.stream);
    object.value("overhead_us", record.overhead.as_micros());
    if record.held > Duration::ZERO {
        object.value("held_ms", record.held.as_millis());
    }
    object.value("duration_ms", record.duration.as_millis());
    record.first_chunk.iter().for_each(|first| object.value("first_chunk_ms", first.as_millis()));
    if !record.degraded.is_empty() {
        let parts: Vec<_> = record.degraded.iter().collect();
        object.list("degraded", &parts, |line, part| push_quoted(line, part.as_str()));
    }
    if let Some(age) = record.cache_age {
        object.known("cache", "hit");
        object.value("cache_age_s", age.as_secs());
    }
    record.refusal.iter().for_each(|refusal| object.known("refusal", refusal));
    if let Some(ids) = &record.ids {
        object.text("trace_id", &Hex(&ids.trace_id).to_string());
    }
    object.end_line();
}

/// Appends the line of an event.
pub(super) fn push_event(line: &mut Vec<u8>, event: &Event) {
    let mut object = Object::line(line, event.at, event.level);
    object.known("event", event.what);
    event.fields.iter().for_each(|(name, value)| object.text(name, value));
    object.end_line();
}

/// A request matters more than others when it was refused, failed, or went without a part of ours.
pub(super) fn level_of(record: &Record) -> Level {
    let is_notable = record.refusal.is_some() || record.status >= 500 || !record.degraded.is_empty();
    if is_notable { Level::Warn } else { Level::Info }
}

fn push_finding(line: &mut Vec<u8>, finding: &FindingNote) {
    let mut object = Object::new(line);
    object.known("kind", finding.kind.as_str());
    object.known("severity", finding.severity.as_str());
    object.known("mode", finding.mode.as_str());
    object.known("detector", finding.detector.as_str());
    object.value("count", finding.count);
    object.value("period", finding.period);
    object.text("policy", &finding.policy);
    object.end();
}

fn push_tokens(line: &mut Vec<u8>, tokens: Tokens) {
    let mut object = Object::new(line);
    object.value("input", tokens.input);
    object.value("cache_read", tokens.cache_read);
    object.value("cache_write", tokens.cache_write);
    object.value("output", tokens.output);
    object.value("reasoning", tokens.reasoning);
    object.end();
}

/// An object under way.
struct Object<'l> {
    line: &'l mut Vec<u8>,
    is_empty: bool,
}

impl<'l> Object<'l> {
    /// The object of a whole line, with what every line has.
    fn line(line: &'l mut Vec<u8>, at: SystemTime, level: Level) -> Self {
        let mut object = Self::new(line);
        object.key("at");
        object.line.push(b'"');
        push_moment(object.line, at);
        object.line.push(b'"');
        object.known("level", level.as_str());
        object
    }

    fn new(line: &'l mut Vec<u8>) -> Self {
        line.push(b'{');
        Self { line, is_empty: true }
    }

    fn key(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(name.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    /// A text of our own, which needs no escapes.
    fn known(&mut self, name: &str, text: &'static str) {
        self.key(name);
        self.line.push(b'"');
        self.line.extend_from_slice(text.as_bytes());
        self.line.push(b'"');
    }

    /// A text that somebody else chose.
    fn text(&mut self, name: &str, text: &str) {
        self.key(name);
        push_quoted(self.line, text);
    }

    /// A number or a boolean.
    fn value(&mut self, name: &str, value: impl fmt::Display) {
        self.key(name);
        // Writing to memory cannot fail.
        write!(self.line, "{value}").unwrap_or_default();
    }

    fn list<T>(&mut self, name: &str, items: &[T], push: fn(&mut Vec<u8>, &T)) {
        self.key(name);
        self.line.push(b'[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            push(self.line, item);
        }
        self.line.push(b']');
    }

    fn end(self) {
        self.line.push(b'}');
    }

    fn end_line(self) {
        self.line.extend_from_slice(b"}\n");
    }
}
