//! What is known of one session, and how it is shown.

use loopbreaker_record::Moment;
use serde_json::{Value, json};

use crate::store::Session;

impl Session {
    /// More agents than this are not named; a session of a thousand agents is a cluster.
    const MAX_AGENTS: usize = 64;

    /// A session that starts now.
    pub(crate) fn new(tenant: i64, tenant_name: &str, name: &str, at: i64) -> Self {
        Self {
            id: 0,
            tenant,
            tenant_name: tenant_name.to_owned(),
            name: name.to_owned(),
            provisional: false,
            level: "normal".to_owned(),
            ended: false,
            entropy: 1.0,
            loop_score: 0.0,
            steps: 0,
            tokens: 0,
            cost: 0.0,
            cumulative: 0.0,
            cluster: String::new(),
            agents: Vec::new(),
            started_at: at,
            last_at: at,
        }
    }

    pub(crate) fn add_agent(&mut self, agent: &str) {
        if self.agents.len() < Self::MAX_AGENTS && !self.agents.iter().any(|known| known == agent) {
            self.agents.push(agent.to_owned());
        }
    }

    /// What a report of the whole cost so far adds. A report that is lower, or comes again, adds nothing.
    pub(crate) fn add_cost(&mut self, cumulative: Option<f64>) -> f64 {
        let Some(cumulative) = cumulative else { return 0.0 };
        let added = (cumulative - self.cumulative).max(0.0);
        self.cumulative = self.cumulative.max(cumulative);
        self.cost += added;
        added
    }

    /// `paused`, `ended`, `loop`, `warning` or `active`.
    pub(crate) fn state(&self, paused: bool) -> &str {
        match self.level.as_str() {
            _ if paused => "paused",
            _ if self.ended => "ended",
            "normal" => "active",
            level => level,
        }
    }

    /// The session as lists and events show it.
    pub(crate) fn summary(&self, paused: bool) -> Value {
        json!({
            "session_id": self.name,
            "tenant": self.tenant_name,
            "agents": self.agents,
            "state": self.state(paused),
            "entropy_score": self.entropy,
            "loop_score": self.loop_score,
            "steps": self.steps,
            "tokens": self.tokens,
            "cost_usd": self.cost,
            "cluster_id": self.cluster,
            "started_at": Moment::from_millis(self.started_at).as_str(),
            "last_at": Moment::from_millis(self.last_at).as_str(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Session;

    #[test]
    fn costs_that_are_reported_again_or_late_add_nothing() {
        let mut session = Session::new(1, "t", "s", 0);
        let added: Vec<f64> =
            [0.5, 0.5, 1.25, 1.0, 2.0].map(|reported| session.add_cost(Some(reported))).into();
        assert_eq!(added, [0.5, 0.0, 0.75, 0.0, 0.75]);
        assert!((session.cost - 2.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_cost_of_a_session_is_the_highest_report(reports in prop::collection::vec(0.0..1e6_f64, 0..50)) {
            let mut session = Session::new(1, "t", "s", 0);
            let sum: f64 = reports.iter().map(|report| session.add_cost(Some(*report))).sum();
            let highest = reports.iter().copied().fold(0.0, f64::max);
            prop_assert!((sum - highest).abs() < 1e-3);
        }
    }
}
