//! The numbers of the first screen.

use serde_json::{Value, json};

use crate::error::Stored;
use crate::observatory::Observatory;
use crate::session::nine_decimals;

/// The tenant of the synthetic loops of `loopbreaker probe`: they burn nothing, and count only where they are asked for.
pub(crate) const PROBE: &str = "loopbreaker-probe";
const DAY: i64 = 24 * 3_600_000;

impl Observatory {
    /// Sessions by state, how fast things go, what loops burned and what stopping them saved since a moment (since
    /// midnight, unless one is given), and what does not work.
    pub(crate) async fn overview(&self, tenant: Option<String>, since: Option<i64>) -> Stored<Value> {
        let now = self.shared.now();
        let since = since.unwrap_or(now - now.rem_euclid(DAY));
        let (calls, spent) = self.shared.rates.now(now, tenant.as_deref());
        let health = self.health();
        let mut shown = json!({
            "calls_per_second": calls, "cost_per_minute_usd": nine_decimals(spent), "degraded": health.degraded(),
            "unwritten": health.unwritten(), "dropped": health.dropped(),
        });
        let counted = self
            .read(move |store| {
                let tenant = tenant.as_deref();
                let sessions = store.count_sessions(tenant, now)?;
                let of = |state: &str| sessions.get(state).copied().unwrap_or(0);
                let (steps, tokens, cost) = store.wasted_since(tenant, since)?;
                let saved = saved(&store.stopped_since(tenant, since)?, &store.rounds_unstopped()?);
                Ok(json!({
                    "sessions": {
                        "active": of("active"), "warning": of("warning"), "loop": of("loop"),
                        "paused": of("paused"), "ended": of("ended"),
                    },
                    "loops_open": of("loop"),
                    "wasted_today": { "steps": steps, "tokens": tokens, "cost_usd": nine_decimals(cost) },
                    "saved_today": saved,
                }))
            })
            .await?;
        if let (Some(shown), Value::Object(counted)) = (shown.as_object_mut(), counted) {
            shown.extend(counted);
        }
        Ok(shown)
    }
}

/// What stopping loops saved: the cost of a round of each, times the mean further rounds of loops of its kind that
/// nobody stopped. Without any such loop it is not known; a kind without one adds nothing.
fn saved(stopped: &[(String, u64, f64)], unstopped: &std::collections::BTreeMap<String, f64>) -> Value {
    if unstopped.is_empty() {
        return Value::Null;
    }
    let (mut cost, mut rounds, mut loops, mut unknown) = (0.0, 0.0, 0, 0);
    for (kind, count, of_a_round) in stopped {
        match unstopped.get(kind) {
            Some(further) => {
                cost += of_a_round * further;
                rounds += *count as f64 * further;
                loops += count;
            }
            None => unknown += count,
        }
    }
    if loops == 0 && unknown > 0 {
        return Value::Null;
    }
    json!({
        "cost_usd": nine_decimals(cost), "rounds": rounds.round(), "loops": loops, "loops_of_unknown_kind": unknown,
        "estimated": true,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::saved;

    #[test]
    fn what_was_saved_is_known_only_beside_loops_that_nobody_stopped() {
        let stopped = [("repeat".to_owned(), 2, 0.5), ("cycle".to_owned(), 1, 9.0)];
        assert_eq!(saved(&stopped, &[].into()), Value::Null);
        assert_eq!(saved(&stopped, &[("churn".to_owned(), 3.0)].into()), Value::Null);
        let known = saved(&stopped, &[("repeat".to_owned(), 10.0)].into());
        assert_eq!((known["cost_usd"].as_f64(), known["rounds"].as_f64()), (Some(5.0), Some(20.0)));
        assert_eq!(known["loops_of_unknown_kind"], 1);
        assert_eq!(saved(&[], &[("repeat".to_owned(), 10.0)].into())["cost_usd"], 0.0);
    }
}
