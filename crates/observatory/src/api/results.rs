//! What became of the logs of one request. Nothing is answered before all of them were read, since most clients send
//! everything before they listen; so what is said about each of them has a limit, and how many there are has none.

use hyper::Response;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::reply::{Reply, json_bytes, json_reply};
use crate::error::StoreError;
use crate::ingest::Accepted;

/// What is answered about one log.
pub(super) enum Answer {
    Kept(Box<Accepted>),
    Refused(u16, Value),
}

impl Answer {
    fn status(&self) -> u16 {
        match self {
            Self::Kept(accepted) if accepted.duplicate => 200,
            Self::Kept(_) => 201,
            Self::Refused(status, _) => *status,
        }
    }

    /// The answer to a request with one log.
    pub(super) fn reply(&self) -> Response<Reply> {
        json_reply(self.status(), &Written { answer: self, index: None, is_brief: false })
    }

    /// What the agent must obey, if it is anything.
    fn order(&self) -> Option<&Value> {
        match self {
            Self::Kept(accepted) if !accepted.control["interrupt_signal"].is_null() => {
                Some(&accepted.control)
            }
            _ => None,
        }
    }

    /// Whether an operator's words are in it: nobody tells them again.
    fn is_told_once(&self) -> bool {
        self.order().is_some_and(|control| control["interrupt_signal"] != "pause")
    }
}

/// An answer as it is written: the log in it as it was kept, without being read and written again.
struct Written<'a> {
    answer: &'a Answer,
    /// Its place among the answers to one request.
    index: Option<usize>,
    /// Without the log, and without reasons.
    is_brief: bool,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        if let Some(index) = self.index {
            fields.serialize_entry("index", &index)?;
            fields.serialize_entry("status", &self.answer.status())?;
        }
        match self.answer {
            Answer::Kept(accepted) if self.is_brief => {
                fields.serialize_entry("duplicate", &accepted.duplicate)?;
                fields.serialize_entry("severity", &accepted.severity)?;
                if let Some(control) = self.answer.order() {
                    fields.serialize_entry("control", control)?;
                }
            }
            Answer::Kept(accepted) => {
                fields.serialize_entry("session_id", &accepted.session_id)?;
                fields.serialize_entry("duplicate", &accepted.duplicate)?;
                fields.serialize_entry("severity", &accepted.severity)?;
                fields.serialize_entry("log", &accepted.log)?;
                fields.serialize_entry("control", &accepted.control)?;
            }
            Answer::Refused(_, why) if self.is_brief => fields.serialize_entry("error", &why["error"])?,
            Answer::Refused(_, why) => {
                for (name, value) in why.as_object().into_iter().flatten() {
                    fields.serialize_entry(name, value)?;
                }
            }
        }
        fields.end()
    }
}

/// How many bytes answers may take.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Up to here they are written whole: those to some twenty thousand logs.
    whole: usize,
    /// Up to here in brief: those to half a million more.
    all: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { whole: 16 << 20, all: 48 << 20 }
    }
}

/// Answers to the logs of one request, in order.
#[derive(Default)]
pub(super) struct Results {
    room: Room,
    accepted: u64,
    rejected: u64,
    count: usize,
    /// The members of the list, with commas between them.
    written: Vec<u8>,
    /// Some have no place in the list.
    is_cut: bool,
}

impl Results {
    pub(super) fn add(&mut self, decided: Result<Answer, StoreError>) {
        let answer = decided.unwrap_or_else(|problem| {
            Answer::Refused(503, json!({ "error": "store_unavailable", "reason": problem.code() }))
        });
        match &answer {
            Answer::Kept(_) => self.accepted += 1,
            Answer::Refused(..) => self.rejected += 1,
        }
        let index = Some(self.count);
        self.count += 1;
        if self.written.len() > self.room.all && !answer.is_told_once() {
            self.is_cut = true;
            return;
        }
        let is_brief = self.written.len() > self.room.whole;
        if !self.written.is_empty() {
            self.written.push(b',');
        }
        // Numbers and texts can always be written.
        serde_json::to_writer(&mut self.written, &Written { answer: &answer, index, is_brief })
            .unwrap_or_default();
    }

    pub(super) fn reply(self) -> Response<Reply> {
        let head = format!(r#"{{"accepted":{},"rejected":{},"results":["#, self.accepted, self.rejected);
        let tail: &[u8] = if self.is_cut { br#"],"truncated":true}"# } else { b"]}" };
        json_bytes(200, [head.as_bytes(), &self.written, tail].concat())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::{Value, json, value::RawValue};

    use super::{Answer, Results, Room};
    use crate::ingest::Accepted;

    fn kept(signal: &Value) -> Answer {
        Answer::Kept(Box::new(Accepted {
            session_id: "run".to_owned(),
            duplicate: false,
            severity: "normal".to_owned(),
            log: RawValue::from_string(format!("\"{}\"", "x".repeat(1_000))).unwrap(),
            control: json!({ "interrupt_signal": signal }),
        }))
    }

    #[tokio::test]
    async fn however_many_there_are_all_are_counted_and_no_order_is_lost() {
        let room = Room { whole: 10_000, all: 20_000 };
        let mut results = Results { room, ..Results::default() };
        while !results.is_cut {
            results.add(Ok(kept(&Value::Null)));
        }
        let count = results.count;
        results.add(Ok(Answer::Refused(422, json!({ "error": "schema_violation", "violations": [] }))));
        results.add(Ok(kept(&json!("inject"))));
        assert!(results.written.len() < room.all + 1_000);
        let body = results.reply().into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(count + 1), &json!(1)));
        assert_eq!(answer["truncated"], true);
        let listed = answer["results"].as_array().unwrap();
        let brief = json!({ "index": 100, "status": 201, "duplicate": false, "severity": "normal" });
        assert!(listed[0]["log"].is_string());
        assert_eq!(listed[100], brief);
        let last = listed.last().unwrap();
        assert_eq!(
            (&last["index"], &last["control"]["interrupt_signal"]),
            (&json!(count + 1), &json!("inject"))
        );
    }
}
