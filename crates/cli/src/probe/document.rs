//! `--json`: one document.

use std::io::{self, Write};

use loopbreaker::Action;
use loopbreaker_config::BaseUrl;
use serde::Serialize;

use super::Found;
use super::conclusion::Conclusion;
use super::health::Health;
use super::synthetic::Judged;
use super::trouble::Trouble;

pub(super) fn write<W: Write>(
    mut out: W,
    url: &BaseUrl,
    found: &Found,
    conclusion: &Result<Conclusion, Trouble>,
) -> io::Result<()> {
    let document = Document {
        url: url.to_string(),
        alive: conclusion.as_ref().map_or(Some(false), Conclusion::is_alive),
        mode: conclusion.as_ref().ok().map(Conclusion::mode),
        summary: conclusion.as_ref().ok().map(ToString::to_string),
        error: conclusion.as_ref().err().map(ToString::to_string),
        hint: conclusion.as_ref().map_or_else(|trouble| Some(trouble.hint()), Conclusion::hint),
        health: found.health.as_ref().map(HealthFields::of),
        requests: found.judged.iter().map(RequestFields::of).collect(),
    };
    serde_json::to_writer(&mut out, &document)?;
    writeln!(out)?;
    out.flush()
}

// The order of the fields is the order on the wire.
#[derive(Serialize)]
struct Document<'a> {
    url: String,
    /// Null when a gateway answers, and has not let the loop begin or does not say what it sees.
    alive: Option<bool>,
    /// `enforce`, `shadow` or `none`; null when nothing could be learnt.
    mode: Option<&'static str>,
    summary: Option<String>,
    error: Option<String>,
    hint: Option<&'static str>,
    health: Option<HealthFields<'a>>,
    requests: Vec<RequestFields<'a>>,
}

#[derive(Serialize)]
struct HealthFields<'a> {
    live: bool,
    status: &'a str,
    degraded: &'a [String],
    open_breakers: &'a [String],
}

#[derive(Serialize)]
struct RequestFields<'a> {
    request: usize,
    status: u16,
    verdict: Option<&'static str>,
    kind: Option<&'a str>,
    count: Option<u64>,
    code: Option<&'a str>,
}

impl<'a> HealthFields<'a> {
    fn of(health: &'a Health) -> Self {
        let Health { live, status, degraded, open_breakers } = health;
        Self { live: *live, status, degraded, open_breakers }
    }
}

impl<'a> RequestFields<'a> {
    fn of(judged: &'a Judged) -> Self {
        let Judged { request, status, verdict, seen, code } = judged;
        Self {
            request: *request,
            status: *status,
            verdict: verdict.map(Action::as_str),
            kind: seen.as_ref().map(|seen| seen.kind.as_str()),
            count: seen.as_ref().map(|seen| seen.count),
            code: code.as_deref(),
        }
    }
}
