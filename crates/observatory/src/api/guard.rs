//! The guard for agents in any language.

use loopbreaker::{GuardSession, Status, Step};
use serde_json::{Value, json};

use super::orders::violations;
use super::reply::json_reply;
use super::{Answered, Caller};
use crate::hitl::Order;
use crate::observatory::{Observatory, Shared};
use crate::rewrite::Asked;
use crate::waste::finding_json;

/// What every call of the guard says.
struct Call {
    session_id: String,
    tool: String,
    args: Option<String>,
}

impl Observatory {
    pub(super) async fn guard_check(&self, body: &Value, caller: &Caller) -> Answered {
        let Call { session_id, tool, mut args } = read_call(body, true)?;
        let session = self.guarded(&session_id, body, caller);
        let mut answer = json!({ "paused": false });
        if !self.shared.hitl.is_quiet()
            // Whoever names no tenant means the session of that name, if there is only one.
            && let Ok(known) = self.find(&session_id, caller.tenant.as_deref()).await?
        {
            if let Some(pause) = self.shared.hitl.pause_of(known.id) {
                let why =
                    if pause.reason.is_empty() { String::new() } else { format!(" ({})", pause.reason) };
                let feedback = format!("An operator has paused this session{why}. Wait, then ask again.");
                let blocked = json!({
                    "allowed": false, "detector": null, "kind": null, "count": 0, "threshold": 0, "strikes": 0,
                    "feedback": feedback, "paused": true,
                });
                return Ok(json_reply(200, &blocked));
            }
            let asked = Asked::new(&tool, args.as_deref(), self.shared.keep_prompts);
            let order = match self.order_for(known.id, &asked) {
                // What may not be called stays ordered: the answer says what is wrong with it.
                Some(Order::Rewrite { tool_input: Some(input), .. })
                    if !session.peek(&tool, Some(&input)).allowed =>
                {
                    args = Some(input);
                    None
                }
                Some(_) => self.hand_out(known.id, asked).await?,
                None => None,
            };
            match order {
                Some(Order::Reject { message }) => {
                    let blocked = json!({
                        "allowed": false, "detector": null, "kind": null, "count": 0, "threshold": 0,
                        "strikes": 0, "feedback": message, "paused": false,
                    });
                    return Ok(json_reply(200, &blocked));
                }
                Some(Order::Rewrite { tool_input: Some(input), .. }) => {
                    answer["rewritten_args"] = json!(input);
                    // What will be called is what is judged.
                    args = Some(input);
                }
                _ => {}
            }
        }
        let verdict = session.check(&tool, args.as_deref());
        answer["allowed"] = verdict.allowed.into();
        answer["detector"] = json!(verdict.detector.map(loopbreaker::DetectorName::as_str));
        answer["kind"] = json!(verdict.kind.map(loopbreaker::Kind::as_str));
        answer["count"] = verdict.count.into();
        answer["threshold"] = verdict.threshold.into();
        answer["strikes"] = verdict.strikes.into();
        answer["feedback"] = json!(verdict.feedback);
        // The answer that the agent has in its transcript still holds.
        if let Some(step) = verdict.unchanged_since {
            answer["unchanged_since"] = step.into();
        }
        Ok(json_reply(200, &answer))
    }

    pub(super) async fn guard_outcome(&self, body: &Value, caller: &Caller) -> Answered {
        let Call { session_id, tool, args } = read_call(body, true)?;
        let result = text_of(&body["result"]);
        let status = body["status"].as_str().and_then(Status::parse);
        if !body["status"].is_null() && status.is_none() {
            let message = "must be one of success, failure, pending, skipped";
            return Err(Box::new(violations(&[("status".to_owned(), message.to_owned())])));
        }
        let report = {
            let step = Step {
                tool: Some(&tool),
                args: args.as_deref(),
                result: result.as_deref(),
                status,
                ..Step::default()
            };
            self.guarded(&session_id, body, caller).outcome(&step)
        };
        let has_run = !matches!(status, Some(Status::Pending | Status::Skipped));
        if has_run
            && !self.shared.hitl.is_quiet()
            && let Ok(known) = self.find(&session_id, caller.tenant.as_deref()).await?
        {
            let ran = Asked::new(&tool, args.as_deref(), self.shared.keep_prompts);
            self.has_run(known.id, &ran).await?;
        }
        let findings: Vec<Value> = report.findings.iter().map(finding_json).collect();
        if !findings.is_empty() {
            let tenant = match self.find(&session_id, caller.tenant.as_deref()).await? {
                Ok(known) => known.tenant_name.into(),
                Err(_) => caller.writes_as(),
            };
            for finding in &findings {
                self.finding(&tenant, &session_id, finding.clone()).await?;
            }
        }
        let answer = json!({ "findings": findings, "action": report.action.as_str(), "hint": report.hint });
        Ok(json_reply(200, &answer))
    }

    pub(super) fn guard_reset(&self, body: &Value, caller: &Caller) -> Answered {
        let Call { session_id, .. } = read_call(body, false)?;
        self.guarded(&session_id, body, caller).reset();
        Ok(json_reply(200, &json!({ "session_id": session_id })))
    }

    /// The guard of a session, which belongs to its tenant.
    fn guarded(&self, session_id: &str, body: &Value, caller: &Caller) -> GuardSession {
        let tenant = caller.writes_as();
        self.shared.guarded.meet(&tenant, session_id);
        let session = self.shared.guard_of(&tenant, session_id);
        match body["scope"].as_str() {
            Some(scope) => session.scope(scope),
            None => session,
        }
    }
}

impl Shared {
    /// The guard of a session of this tenant.
    fn guard_of(&self, tenant: &str, session_id: &str) -> GuardSession {
        self.thresholds.guard().session(&format!("{tenant}\0{session_id}"))
    }

    /// The session is over: a later one of its name begins anew.
    pub(crate) fn free_guard(&self, tenant: &str, session_id: &str) {
        self.guard_of(tenant, session_id).free();
    }
}

fn read_call(body: &Value, with_tool: bool) -> Result<Call, Box<hyper::Response<super::Reply>>> {
    let mut problems = Vec::new();
    let mut required = |field: &str| match &body[field] {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Null => {
            problems.push((field.to_owned(), "is required".to_owned()));
            String::new()
        }
        _ => {
            problems.push((field.to_owned(), "must be a string that is not empty".to_owned()));
            String::new()
        }
    };
    let session_id = required("session_id");
    let tool = if with_tool { required("tool") } else { String::new() };
    if !matches!(body["scope"], Value::Null | Value::String(_)) {
        problems.push(("scope".to_owned(), "must be a string".to_owned()));
    }
    if problems.is_empty() {
        Ok(Call { session_id, tool, args: text_of(&body["args"]) })
    } else {
        Err(Box::new(violations(&problems)))
    }
}

/// JSON as text; a text is taken as it is.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
