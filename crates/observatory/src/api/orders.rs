//! What operators order and change.

use loopbreaker_record::TraceId;
use serde_json::{Value, json};

use super::query::Query;
use super::reply::{error, json_reply};
use super::{Answered, Caller};
use crate::hitl::Order;
use crate::observatory::Observatory;
use crate::orders::OrderRefused;
use crate::redact::redact_text;
use hyper::Response;

use super::reply::Reply;

/// Searches that are kept for everybody.
const MAX_SEARCHES: usize = 200;
/// Bytes of the name and of the query of one of them.
const MAX_SEARCH: usize = 2_000;

/// What an operator is told who wants to replace what no request carries.
const HISTORY_ELSEWHERE: &str = "the provider keeps this session's history (`previous_response_id` or \
    `conversation`), so no request carries this result and it cannot be replaced; tell the model with `inject` instead";
/// What an operator is told who wants to replace the arguments of a call that has been made.
const ALREADY_RUN: &str = "this step is not pending: its call has run or never will, so other arguments come too late; \
    tell the model with `inject` instead";

impl Observatory {
    pub(super) async fn take_order(
        &self,
        path: &str,
        id: &str,
        query: &Query,
        body: Value,
        caller: &Caller,
    ) -> Answered {
        let operator = operator_of(caller)?;
        let name = path.rsplit('/').next().unwrap_or_default();
        let order = read_order(name, &body)?;
        let session = self.one(id, query, caller).await?;
        let given = self.order(&session.tenant_name, &session.name, operator, order).await?;
        let given = given.map_err(|refused| match refused {
            OrderRefused::Unknown => error(404, "not_found", "no step of that trace_id is in this session"),
            OrderRefused::HistoryElsewhere => error(409, "history_elsewhere", HISTORY_ELSEWHERE),
            OrderRefused::AlreadyRun => error(409, "already_run", ALREADY_RUN),
        })?;
        let mut answer = json!({ "session_id": given.session_id, "state": given.state });
        if let Some(note) = given.note {
            answer["note"] = note.into();
        }
        Ok(json_reply(200, &answer))
    }

    /// Changes the thresholds, or takes all changes of them back.
    pub(super) async fn put_detectors(&self, body: Option<Value>, caller: &Caller) -> Answered {
        let operator = operator_of(caller)?;
        match self.configure(operator, body).await? {
            Ok(whole) => Ok(json_reply(200, &whole)),
            Err(problems) => Err(Box::new(violations(&problems))),
        }
    }

    pub(super) async fn list_searches(&self) -> Answered {
        let kept = self.read(|store| store.setting(SEARCHES)).await?;
        let searches: Value = kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(json!([]));
        Ok(json_reply(200, &json!({ "searches": searches })))
    }

    pub(super) async fn save_search(&self, body: Value, caller: &Caller) -> Answered {
        operator_of(caller)?;
        let mut problems = Vec::new();
        let mut text = |field: &str| {
            let problem = match &body[field] {
                Value::Null => "is required".to_owned(),
                Value::String(text) if text.is_empty() => "must not be empty".to_owned(),
                Value::String(text) if text.len() > MAX_SEARCH => {
                    format!("must have at most {MAX_SEARCH} bytes")
                }
                Value::String(text) => return redact_text(text, true),
                _ => "must be a string".to_owned(),
            };
            problems.push((field.to_owned(), problem));
            String::new()
        };
        let (name, query) = (text("name"), text("query"));
        if !problems.is_empty() {
            return Err(Box::new(violations(&problems)));
        }
        let saved = self.keep_search(name, Some(query), MAX_SEARCHES, SEARCHES).await?;
        if !saved {
            return Err(Box::new(error(409, "conflict", "200 searches are saved already")));
        }
        Ok(json_reply(201, &json!({ "saved": true })))
    }

    pub(super) async fn drop_search(&self, query: &Query, caller: &Caller) -> Answered {
        operator_of(caller)?;
        // It is known by the name that it was kept under.
        let name = redact_text(&query.owned("name").unwrap_or_default(), true);
        self.keep_search(name, None, MAX_SEARCHES, SEARCHES).await?;
        self.list_searches().await
    }
}

const SEARCHES: &str = "searches";

pub(super) fn operator_of(caller: &Caller) -> Result<&str, Box<Response<Reply>>> {
    let refusal = || Box::new(error(403, "forbidden", "this needs the role `operator`"));
    caller.operator.as_deref().ok_or_else(refusal)
}

fn read_order(name: &str, body: &Value) -> Result<Order, Box<Response<Reply>>> {
    let mut problems = Vec::new();
    let mut text = |field: &str, required: bool| {
        let problem = match &body[field] {
            Value::String(text) if !required || !text.is_empty() => return Some(text.clone()),
            Value::Null if !required => return None,
            Value::Null => "is required",
            Value::String(_) => "must not be empty",
            value @ Value::Object(_) if field == "tool_input" => return Some(value.to_string()),
            _ => "must be a string",
        };
        problems.push((field.to_owned(), problem.to_owned()));
        None
    };
    let order = match name {
        "pause" => Order::Pause { reason: text("reason", false).unwrap_or_default() },
        "resume" => Order::Resume,
        "reject" => {
            let message = text("message", false).filter(|message| !message.trim().is_empty());
            Order::Reject {
                message: message.unwrap_or_else(|| "an operator has stopped this session".to_owned()),
            }
        }
        "inject" => Order::Inject { message: text("message", true).unwrap_or_default() },
        _ => {
            let trace_id = text("trace_id", true);
            let (content, tool_input) = (text("content", false), text("tool_input", false));
            // What is no id at all is that of no step, as every id that is unknown.
            let nobody = || TraceId::from_random_bytes([0; 16]);
            let trace_id = trace_id.as_deref().and_then(TraceId::parse).unwrap_or_else(nobody);
            let is_json = |text: &String| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            if !tool_input.as_ref().is_none_or(is_json) {
                problems.push(("tool_input".to_owned(), "must be JSON, as text or as an object".to_owned()));
            }
            if content.is_none() && tool_input.is_none() && problems.is_empty() {
                problems.push(("content".to_owned(), "is required, or tool_input".to_owned()));
            }
            Order::Rewrite { trace_id, content, tool_input, tool: None, call: None, by: None }
        }
    };
    if problems.is_empty() { Ok(order) } else { Err(Box::new(violations(&problems))) }
}

pub(super) fn violations(problems: &[(String, String)]) -> Response<Reply> {
    let listed: Vec<Value> =
        problems.iter().map(|(field, message)| json!({ "field": field, "message": message })).collect();
    json_reply(422, &json!({ "error": "schema_violation", "violations": listed }))
}
