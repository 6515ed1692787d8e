//! `POST /api/v1/probe`: would the guard stop a real loop? A synthetic one is put before it; no model hears of it.

use std::time::Instant;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{HeaderMap, HeaderValue};
use loopbreaker::Action;
use loopbreaker_config::Dialect as Provider;
use loopbreaker_dialect::Dialect;
use serde_json::{Value, json};

use crate::consider::{Looked, consider};
use crate::pipeline::Worker;
use crate::reply::{Reply, with};

/// The default ladder ends well before that.
const MAX_ROUNDS: usize = 16;

impl Worker {
    /// Says what is done with each request of an agent that makes the same call again and again.
    pub(crate) fn probe(&self) -> Response<Reply> {
        let (started, settings) = (Instant::now(), self.shared.settings());
        let name = format!("probe-{:x}", crate::state::today().as_millis());
        let mut headers = HeaderMap::new();
        for header in ["x-session-id", "x-tenant-id", "x-agent-id"] {
            if let Ok(value) = HeaderValue::from_str(&name) {
                headers.insert(header, value);
            }
        }
        let (mut requests, mut strictest, mut is_seen) = (Vec::new(), Action::Allow, false);
        for rounds in 0..MAX_ROUNDS {
            let body = Bytes::from(body(&name, rounds));
            let looked = Looked {
                method: "POST",
                path: "/v1/chat/completions",
                query: "",
                headers: &headers,
                provider: Provider::OpenAi,
                dialect: Some(Dialect::Chat),
                body: Some(&body),
                came: Some(&body),
            };
            let mut case = consider(&self.shared, &settings, &looked);
            case.keep_transcript(&self.shared, looked.dialect);
            let verdict = case.verdict.action;
            requests.push(json!({ "n": rounds + 1, "verdict": verdict.as_str() }));
            strictest = strictest.max(verdict);
            is_seen |= !case.verdict.notes.is_empty();
            if verdict == Action::Reject {
                break;
            }
        }
        let is_enforced = strictest >= Action::Hint;
        let message = match (is_enforced, is_seen) {
            (true, _) => format!("the guard is alive: it comes to `{}`", strictest.as_str()),
            (false, true) => "the guard is alive, but only looks on: every policy is in shadow".to_owned(),
            (false, false) => "no policy looks for tool loops".to_owned(),
        };
        let told = json!({
            "alive": is_seen, "enforced": is_enforced, "requests": requests, "message": message,
            "took_ms": started.elapsed().as_secs_f64() * 1e3,
        });
        with(200, "application/json", told.to_string())
    }
}

fn body(name: &str, rounds: usize) -> String {
    let mut messages = vec![json!({ "role": "user", "content": format!("{name}: a synthetic loop") })];
    for round in 0..rounds {
        let id = format!("call_{round}");
        let function = json!({ "name": "read_file", "arguments": r#"{"path":"probe.txt"}"# });
        let call: Value = json!({ "id": id, "type": "function", "function": function });
        messages.push(json!({ "role": "assistant", "tool_calls": [call] }));
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "nothing new" }));
    }
    json!({ "model": "probe", "messages": messages }).to_string()
}
