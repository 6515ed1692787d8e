//! What is known of one session, and how it is shown.

use loopbreaker_record::Moment;
use serde::Serialize;
use serde_json::Value;

use crate::concern::worse;
use crate::store::{Marks, Session};
use loopbreaker::{Finding, Wasted};

impl Session {
    /// More agents than this are not named; a session of a thousand agents is a cluster.
    const MAX_AGENTS: usize = 64;
    /// Scores that a small chart shows.
    const MAX_RECENT: usize = 16;

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
            wasted: Wasted::default(),
            marks: Marks::default(),
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

    /// What one round cost, beside the reports of the whole.
    pub(crate) fn spend(&mut self, cost: f64) {
        self.cost += cost;
        self.cumulative += cost;
    }

    /// A new score of its last decisions.
    pub(crate) fn scored(&mut self, score: f64, level: &str) {
        self.entropy = score;
        level.clone_into(&mut self.marks.entropy_level);
        let recent = &mut self.marks.recent;
        if recent.len() >= Self::MAX_RECENT {
            recent.remove(0);
        }
        recent.push(score);
        self.settle_level();
    }

    /// What was found in its own logs with the last of them.
    pub(crate) fn concerned(&mut self, findings: &[Finding], is_judged: bool) {
        self.marks.concern.take(findings, is_judged);
        self.settle_level();
    }

    /// Something was found in it elsewhere, which its score follows as long as a verdict says that it is in that.
    pub(crate) fn found(&mut self, severity: &str, score: f64) {
        let marks = &mut self.marks;
        let newest = match severity {
            "loop" => &mut marks.found_loop,
            "warning" => &mut marks.found_warning,
            _ => return,
        };
        *newest = score.clamp(0.0, 1.0);
        if marks.verdict_level == severity && !marks.verdict_recovery.is_fading() {
            marks.verdict_score = *newest;
            self.settle_level();
        }
    }

    /// The session's level is the worst of what its decisions, its calls and the gateway say.
    pub(crate) fn settle_level(&mut self) {
        let marks = &mut self.marks;
        let level = worse(worse(&marks.entropy_level, &marks.concern.level), &marks.verdict_level);
        self.level = if level.is_empty() { "normal" } else { level }.to_owned();
        let found = marks.concern.score.max(marks.verdict_score);
        self.loop_score = four_decimals((1.0 - self.entropy).max(found));
        if self.level == "normal" {
            marks.agents.clear();
        }
    }

    /// An agent took a step of this level: whether it is part of what is wrong, once it is known what the session is in.
    pub(crate) fn stepped(&mut self, agent: &str, level: &str) {
        // An agent that was in a loop is watched as long as its session.
        let is_recovering = self.marks.concern.is_recovering();
        let agents = &mut self.marks.agents;
        if level == "normal" {
            if let Some(known) = agents.get_mut(agent).filter(|_| is_recovering) {
                "warning".clone_into(known);
            } else {
                agents.remove(agent);
            }
        } else if agents.len() < Self::MAX_AGENTS {
            agents.insert(agent.to_owned(), level.to_owned());
        }
    }

    /// Whether it did nothing for so long that it is in no loop any more, whatever it was in before.
    pub(crate) const fn is_silent(&self, now: i64) -> bool {
        self.last_at < silent_before(now)
    }

    /// One more redundant repeat.
    pub(crate) fn waste(&mut self, tokens: u64, cost: f64) {
        self.wasted.steps += 1;
        self.wasted.tokens = self.wasted.tokens.saturating_add(tokens);
        self.wasted.cost_usd += cost;
    }

    /// What one round of a loop of this session costs: the mean of its redundant repeats, else of all its steps.
    pub(crate) fn cost_of_a_round(&self) -> f64 {
        if self.wasted.steps > 0 {
            self.wasted.cost_usd / self.wasted.steps as f64
        } else {
            self.cost / self.steps.max(1) as f64
        }
    }

    /// `paused`, `ended`, `loop`, `warning` or `active`.
    pub(crate) fn state(&self, paused: bool, now: i64) -> &str {
        match self.level.as_str() {
            _ if paused => "paused",
            _ if self.ended => "ended",
            "normal" => "active",
            _ if self.is_silent(now) => "active",
            level => level,
        }
    }

    /// The session as lists and its own page show it.
    pub(crate) fn shown(&self, paused: bool, now: i64) -> Value {
        let mut shown = serde_json::to_value(self.summary(paused, now)).unwrap_or_default();
        shown["entropy_history"] = self.marks.recent.as_slice().into();
        shown
    }

    /// The session as events tell it.
    pub(crate) fn told(&self, paused: bool, now: i64) -> Summary<'_> {
        Summary { event_type: Some("session"), ..self.summary(paused, now) }
    }

    fn summary(&self, paused: bool, now: i64) -> Summary<'_> {
        let Wasted { steps, tokens, cost_usd } = self.wasted;
        Summary {
            event_type: None,
            session_id: &self.name,
            tenant: &self.tenant_name,
            agents: &self.agents,
            state: self.state(paused, now),
            entropy_score: self.entropy,
            loop_score: self.loop_score,
            steps: self.steps,
            tokens: self.tokens,
            cost_usd: nine_decimals(self.cost),
            wasted: Burned { steps, tokens, cost_usd: nine_decimals(cost_usd) },
            alert: self.marks.alert.as_ref().filter(|_| !self.is_silent(now)),
            last_verdict: self.marks.verdict.as_ref().map(|verdict| &verdict["action"]),
            verdict: self.marks.verdict.as_ref(),
            cluster_id: &self.cluster,
            started_at: Moment::from_millis(self.started_at),
            last_at: Moment::from_millis(self.last_at),
        }
    }
}

/// What is shown of a session.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event_type: Option<&'static str>,
    session_id: &'a str,
    tenant: &'a str,
    agents: &'a [String],
    state: &'a str,
    entropy_score: f64,
    loop_score: f64,
    steps: u64,
    tokens: u64,
    cost_usd: f64,
    wasted: Burned,
    alert: Option<&'a Value>,
    last_verdict: Option<&'a Value>,
    verdict: Option<&'a Value>,
    cluster_id: &'a str,
    started_at: Moment,
    last_at: Moment,
}

/// What redundant repeats burned.
#[derive(Debug, Serialize)]
struct Burned {
    steps: usize,
    tokens: u64,
    cost_usd: f64,
}

/// An agent that did nothing for so long is dead, and its sessions are in no loop any more.
pub(crate) const SILENT_AFTER: i64 = 15 * 60_000;

/// Whatever did its last before this moment is silent.
pub(crate) const fn silent_before(now: i64) -> i64 {
    now.saturating_sub(SILENT_AFTER)
}

/// Dollars have nine decimals: what is behind them came from adding up.
pub(crate) fn nine_decimals(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// Scores have four decimals.
pub(crate) fn four_decimals(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Session, nine_decimals};

    #[test]
    fn sums_of_dollars_show_no_rounding_error() {
        let shown = [0.1 + 0.2, 0.3 - 0.1, 1e12].map(|sum| nine_decimals(sum).to_string());
        assert_eq!(shown, ["0.3", "0.2", "1000000000000"]);
    }

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
