//! Lines for eyes.

use std::fmt;
use std::io::Write;
use std::time::{Duration, SystemTime};

use loopbreaker::{Action, Kind};

use super::clock::push_moment;
use super::plain::push_word;
use super::{Event, Level};
use crate::decimal::Decimal;
use crate::record::{Mode, Record};

/// Appends the line of a request: what was decided first, then who and what, then what it cost.
pub(super) fn push_request(line: &mut Vec<u8>, record: &Record, colour: bool) {
    begin(line, record.at);
    // The request was let through, but that is not what became of it.
    if record.is_cut && record.verdict == Action::Allow {
        paint(line, "cut", 8, colour.then_some(MAGENTA));
    } else {
        paint(line, record.verdict.as_str(), 8, colour.then(|| colour_of_verdict(record.verdict)));
    }
    put(line, format_args!(" {} {} ", record.status, record.dialect.as_str()));
    if let Some(model) = &record.model {
        push_word(line, model);
    } else {
        push_word(line, &record.method);
        line.push(b' ');
        push_word(line, record.bare_path());
    }
    for (name, text) in [("session", &record.session), ("tenant", &record.tenant), ("agent", &record.agent)] {
        put(line, format_args!(" {name}="));
        push_word(line, text);
    }
    if record.is_cut && record.verdict != Action::Allow {
        line.extend_from_slice(b" answer=cut");
    }
    for finding in &record.findings {
        put(line, format_args!(" {}={}", finding.severity, finding.kind));
        if finding.kind == Kind::Cycle {
            put(line, format_args!("/{}", finding.period));
        }
        put(line, format_args!("x{}", finding.count));
        if finding.mode == Mode::Shadow {
            line.extend_from_slice(b"(shadow)");
        }
    }
    if let Some(tokens) = record.tokens {
        let sign = if record.tokens_estimated { "~" } else { "" };
        put(line, format_args!(" tokens={sign}{}+{}", tokens.read(), tokens.written()));
        let cost = Decimal { units: record.cost_micros, digits: 6 };
        let doubt = if record.cost_known { "" } else { "(price_unknown)" };
        put(line, format_args!(" cost=${cost}{doubt}"));
    }
    if let Some(age) = record.cache_age {
        put(line, format_args!(" cache=hit age={}s", age.as_secs()));
    }
    put(line, format_args!(" own={} total={}", Short(record.overhead), Short(record.duration)));
    if record.held > Duration::ZERO {
        put(line, format_args!(" held={}", Short(record.held)));
    }
    if !record.degraded.is_empty() {
        put(line, format_args!(" degraded={}", record.degraded));
    }
    if let Some(refusal) = record.refusal {
        put(line, format_args!(" refusal={refusal}"));
    }
    line.push(b'\n');
}

/// Appends the line of an event.
pub(super) fn push_event(line: &mut Vec<u8>, event: &Event, colour: bool) {
    begin(line, event.at);
    paint(line, event.level.as_str(), 8, colour.then(|| colour_of_level(event.level)));
    put(line, format_args!(" {}", event.what));
    for (name, value) in &event.fields {
        put(line, format_args!(" {name}="));
        push_word(line, value);
    }
    line.push(b'\n');
}

fn begin(line: &mut Vec<u8>, at: SystemTime) {
    push_moment(line, at);
    line.push(b' ');
}

/// A word in its column, in the colour of this terminal code.
fn paint(line: &mut Vec<u8>, word: &str, width: usize, code: Option<u8>) {
    match code {
        Some(code) => put(line, format_args!("\x1b[{code}m{word:width$}\x1b[0m")),
        None => put(line, format_args!("{word:width$}")),
    }
}

const RED: u8 = 31;
const GREEN: u8 = 32;
const YELLOW: u8 = 33;
const MAGENTA: u8 = 35;
const CYAN: u8 = 36;

fn colour_of_verdict(verdict: Action) -> u8 {
    match verdict {
        Action::Allow => GREEN,
        Action::Warn => YELLOW,
        Action::Hint => CYAN,
        Action::Throttle | Action::Pause => MAGENTA,
        Action::Reject => RED,
    }
}

fn colour_of_level(level: Level) -> u8 {
    match level {
        Level::Info => GREEN,
        Level::Warn => YELLOW,
        Level::Error => RED,
    }
}

fn put(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    line.write_fmt(text).unwrap_or_default();
}

/// A duration in the unit in which it is read at a glance.
struct Short(Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros {
            0..1_000 => write!(f, "{micros}us"),
            1_000..1_000_000 => write!(f, "{}.{}ms", micros / 1_000, micros / 100 % 10),
            _ => write!(f, "{}.{}s", micros / 1_000_000, micros / 100_000 % 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Short;

    #[test]
    fn durations_are_short() {
        let shown = [0, 85, 999, 1_250, 999_999, 1_240_000, 61_000_000]
            .map(|micros| Short(Duration::from_micros(micros)).to_string());
        assert_eq!(shown, ["0us", "85us", "999us", "1.2ms", "999.9ms", "1.2s", "61.0s"]);
    }
}
