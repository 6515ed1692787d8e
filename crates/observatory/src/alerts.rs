//! Alerts of a session whose decisions are too much alike, and its recoveries.

use std::sync::Arc;

use loopbreaker::{EntropyAlert, EntropyEvent, EntropyLevel, EntropyReading};
use loopbreaker_record::{DecisionLog, Moment};
use serde_json::{Value, json};

use crate::error::Stored;
use crate::events::Topic;
use crate::session::four_decimals;
use crate::writer::Scribe;

impl Scribe<'_> {
    /// Tells of alerts and recoveries, and keeps what a list shows of an open one.
    pub(crate) fn tell_entropy(
        &mut self,
        tenant: &Arc<str>,
        session: &str,
        id: i64,
        log: &DecisionLog,
        reported: Option<f64>,
        reading: &EntropyReading,
    ) -> Stored<()> {
        let agent = &log.identity.agent_id;
        let now = self.now;
        let marks = &mut self.change(id)?.marks;
        marks.alert = reading.open.as_ref().map(|alert| {
            let since = marks.alert.as_ref().and_then(|alert| alert["since"].as_str().map(str::to_owned));
            let mut shown = alert_body(session, agent, alert);
            if let Some(fields) = shown.as_object_mut() {
                fields.retain(|name, _| name != "event_type" && name != "session_id");
            }
            let since = since.unwrap_or_else(|| Moment::from_millis(now).as_str().to_owned());
            shown["since"] = since.into();
            shown
        });
        match &reading.event {
            Some(EntropyEvent::Alert(alert)) => {
                let body = alert_body(session, agent, alert);
                self.store.add_finding(id, self.now, &finding_body(alert, log))?;
                self.tell(Topic::EntropyAlerts, "entropy_alert", tenant, &body);
            }
            Some(EntropyEvent::Recovered(score)) => {
                let body = json!({
                    "event_type": "entropy_recovered", "session_id": session, "agent_id": agent,
                    "entropy_score": score,
                });
                self.tell(Topic::EntropyAlerts, "entropy_recovered", tenant, &body);
            }
            None => {}
        }
        if reading.discrepancy.is_some() {
            let body = json!({
                "event_type": "entropy_discrepancy", "session_id": session, "agent_id": agent,
                "trace_id": log.meta.trace_id, "reported": reported, "entropy_score": reading.score,
            });
            self.tell(Topic::EntropyAlerts, "entropy_discrepancy", tenant, &body);
        }
        Ok(())
    }
}

/// The seven fields of the alert, and no other.
fn alert_body(session: &str, agent: &str, alert: &EntropyAlert) -> Value {
    json!({
        "event_type": "entropy_alert",
        "session_id": session,
        "agent_id": agent,
        "entropy_score": alert.entropy_score,
        "window_size": alert.window_size,
        "repeated_pattern": {
            "intent": alert.repeated_pattern.intent,
            "tool_call": alert.repeated_pattern.tool_call,
            "action_status": alert.repeated_pattern.action_status.as_str(),
        },
        "occurrence_count": alert.occurrence_count,
    })
}

fn finding_body(alert: &EntropyAlert, log: &DecisionLog) -> Value {
    json!({
        "detector": "entropy",
        "kind": "entropy",
        "severity": EntropyLevel::Loop.as_str(),
        "score": four_decimals(1.0 - alert.entropy_score),
        "count": alert.occurrence_count,
        "trace_id": log.meta.trace_id,
        "pattern": {
            "intent": alert.repeated_pattern.intent,
            "tool_call": alert.repeated_pattern.tool_call,
            "action_status": alert.repeated_pattern.action_status.as_str(),
        },
    })
}
