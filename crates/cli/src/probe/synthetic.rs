//! A loop that no agent made: the same call with the same result, once more in every request. In the end it is left, as
//! an agent does that has listened, so that nobody is called to a loop that is none.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use loopbreaker::Action;
use loopbreaker_config::BaseUrl;
use loopbreaker_observatory::STEPS_OUT_OF_A_LOOP;
use serde_json::{Value, json};

use super::trouble::Trouble;
use crate::http;
use crate::told::{RefusalWords, SeenLoop, Told};

/// One synthetic loop, with a session of its own.
#[derive(Debug)]
pub(super) struct Loop {
    /// No two loops have the same: earlier probes must not count for this one.
    name: String,
}

/// What the gateway would have done with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    /// Counted from 1.
    pub(super) request: usize,
    pub(super) status: u16,
    /// Not told while every policy is in shadow.
    pub(super) verdict: Option<Action>,
    pub(super) seen: Option<SeenLoop>,
    /// Why it was refused.
    pub(super) code: Option<String>,
}

impl Judged {
    pub(super) fn is_refused(&self) -> bool {
        self.status != 200
    }
}

impl Loop {
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { name: format!("probe-{:x}-{:x}", now.as_nanos(), std::process::id()) }
    }

    /// The session under which all of it is written down.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Asks what would be done with a request whose transcript has gone round so often.
    pub(super) async fn put_before(&self, url: &BaseUrl, rounds: usize) -> Result<Judged, Trouble> {
        self.ask(url, rounds, &self.body(rounds)).await
    }

    /// Goes on with something else after so many rounds: what was wrong is over when several requests have shown that.
    pub(super) async fn leave(&self, url: &BaseUrl, rounds: usize) -> Result<(), Trouble> {
        let first = WAY_OUT.len().saturating_sub(usize::from(STEPS_OUT_OF_A_LOOP)) + 1;
        for calls in first..=WAY_OUT.len() {
            let others = WAY_OUT.get(..calls).unwrap_or(WAY_OUT);
            self.ask(url, rounds, &self.body_of(rounds, others)).await?;
        }
        Ok(())
    }

    async fn ask(&self, url: &BaseUrl, rounds: usize, body: &str) -> Result<Judged, Trouble> {
        let request = Request::post("/v1/decision")
            .header("content-type", "application/json")
            .header("x-original-method", "POST")
            .header("x-original-uri", "/v1/chat/completions")
            .header("x-tenant-id", WHO)
            .header("x-agent-id", WHO)
            .header("x-session-id", &self.name)
            .body(Full::from(Bytes::copy_from_slice(body.as_bytes())))
            .map_err(Trouble::Request)?;
        let answer = http::ask(url, request).await?;
        let told = Told::of(&answer.headers);
        if !told.is_ours {
            return Err(Trouble::foreign(url, &answer));
        }
        let code = if answer.status == 200 { None } else { RefusalWords::of(&answer.body).code };
        let Told { verdict, seen, .. } = told;
        Ok(Judged { request: rounds + 1, status: answer.status, verdict, seen, code })
    }

    fn body(&self, rounds: usize) -> String {
        self.body_of(rounds, &[])
    }

    /// So many rounds of the loop, and other calls behind them.
    fn body_of(&self, rounds: usize, others: &[(&str, &str)]) -> String {
        let opening = format!("{}: a synthetic loop, which nobody sends to a model", self.name);
        let mut messages = vec![json!({ "role": "user", "content": opening })];
        messages.extend((0..rounds).flat_map(|number| round(number, "read_file", "nothing new")));
        let others = others.iter().enumerate();
        messages.extend(others.flat_map(|(index, (tool, result))| round(rounds + index, tool, result)));
        json!({ "messages": messages, "model": WHO }).to_string()
    }
}

/// A call and its result.
fn round(number: usize, tool: &str, result: &str) -> [Value; 2] {
    let id = format!("call_{number}");
    let function = json!({ "name": tool, "arguments": r#"{"path":"probe.txt"}"# });
    [
        json!({ "role": "assistant", "content": null,
                "tool_calls": [{ "id": id, "type": "function", "function": function }] }),
        json!({ "role": "tool", "tool_call_id": id, "content": result }),
    ]
}

/// What an agent does that has understood: each call is another one, and more of them than the last decisions that are
/// looked at, so that nothing of the loop is left among them.
const WAY_OUT: &[(&str, &str)] = &[
    ("list_files", "probe.txt, notes.txt"),
    ("stat_file", "11 bytes, written a year ago"),
    ("search_text", "no line says more"),
    ("read_notes", "the file is complete as it is"),
    ("count_lines", "one line"),
    ("compare_files", "they differ in their length"),
    ("hash_file", "9f2c"),
    (LAST_CALL, "done"),
];
/// The last call of the way out: once it is written down, everything is.
pub(super) const LAST_CALL: &str = "write_report";

/// Tenant, agent and model of the synthetic requests: nobody's budget is touched by them.
pub(super) const WHO: &str = "loopbreaker-probe";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transcript_goes_on_from_the_one_before() {
        let synthetic = Loop::new();
        let messages = |rounds| {
            let body: Value = serde_json::from_str(&synthetic.body(rounds)).unwrap();
            body["messages"].as_array().unwrap().clone()
        };
        assert_eq!(messages(2).len(), 5);
        assert_eq!(messages(3)[..5], messages(2)[..]);
    }

    #[test]
    fn two_loops_are_never_the_same() {
        assert_ne!(Loop::new().body(0), Loop::new().body(0));
    }
}
