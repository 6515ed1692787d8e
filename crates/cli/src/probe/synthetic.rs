//! A loop that no agent made: the same call with the same result, once more in every request.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use loopbreaker::Action;
use loopbreaker_config::BaseUrl;
use serde_json::{Value, json};

use super::trouble::Trouble;
use crate::http;
use crate::told::{RefusalWords, SeenLoop, Told};

/// One synthetic loop, with a session of its own.
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

    /// Asks what would be done with a request whose transcript has gone round so often.
    pub(super) async fn put_before(&self, url: &BaseUrl, rounds: usize) -> Result<Judged, Trouble> {
        let request = Request::post("/v1/decision")
            .header("content-type", "application/json")
            .header("x-original-method", "POST")
            .header("x-original-uri", "/v1/chat/completions")
            .header("x-tenant-id", WHO)
            .header("x-agent-id", WHO)
            .header("x-session-id", &self.name)
            .body(Full::from(Bytes::from(self.body(rounds))))
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
        let opening = format!("{}: a synthetic loop, which nobody sends to a model", self.name);
        let mut messages = vec![json!({ "role": "user", "content": opening })];
        messages.extend((0..rounds).flat_map(round));
        json!({ "messages": messages, "model": WHO }).to_string()
    }
}

/// The call and its result, the same each time.
fn round(number: usize) -> [Value; 2] {
    let id = format!("call_{number}");
    let function = json!({ "name": "read_file", "arguments": r#"{"path":"probe.txt"}"# });
    [
        json!({ "role": "assistant", "content": null,
                "tool_calls": [{ "id": id, "type": "function", "function": function }] }),
        json!({ "role": "tool", "tool_call_id": id, "content": "nothing new" }),
    ]
}

/// Tenant, agent and model of the synthetic requests: nobody's budget is touched by them.
const WHO: &str = "loopbreaker-probe";

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
