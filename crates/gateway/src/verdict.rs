//! The verdict on one request: the strictest of what all stages propose, and what they all saw.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use loopbreaker::{Action, Finding, Kind};
use loopbreaker_dialect::Refusal;
use loopbreaker_telemetry::FindingNote;
use serde_json::Value;

/// The combined answer to one request.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) action: Action,
    /// Everything that was seen, in shadow too.
    pub(crate) notes: Vec<FindingNote>,
    /// The same with its proof, for those who keep it.
    pub(crate) findings: Vec<Value>,
    /// The policy that is behind the action.
    pub(crate) policy: Option<Arc<str>>,
    /// The strictest of what policies in shadow would have done.
    pub(crate) would: Option<Would>,
    /// What the headers tell of the loop, if there is one.
    pub(crate) seen: Option<Seen>,
    /// What is told to the model.
    pub(crate) hint: Option<String>,
    /// How long the request is held.
    pub(crate) delay: Duration,
    /// What a refusal says.
    pub(crate) refusal: Option<Refused>,
    /// A budget that has reached one of its stages.
    pub(crate) budget_warning: Option<String>,
}

/// What a policy in shadow would have done.
#[derive(Debug, Clone)]
pub(crate) struct Would {
    pub(crate) action: Action,
    pub(crate) policy: Arc<str>,
    pub(crate) kind: Kind,
}

/// A loop as the headers tell it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) count: u64,
    pub(crate) period: u64,
}

/// What a refusal says.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) code: Refusal,
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) retry_after: Option<u64>,
    /// Whether the common SDKs may try again by themselves.
    pub(crate) retry: bool,
    /// `RateLimit` and `RateLimit-Policy`.
    pub(crate) rate_limit: Option<(String, String)>,
}

/// What one stage would do.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) action: Action,
    pub(crate) seen: Option<Seen>,
    pub(crate) hint: Option<String>,
    pub(crate) delay: Duration,
    pub(crate) refusal: Option<Refused>,
}

impl Verdict {
    /// Nothing was seen yet.
    pub(crate) const fn allow() -> Self {
        Self {
            action: Action::Allow,
            notes: Vec::new(),
            findings: Vec::new(),
            policy: None,
            would: None,
            seen: None,
            hint: None,
            delay: Duration::ZERO,
            refusal: None,
            budget_warning: None,
        }
    }

    /// Combines what a policy proposes, or only notes it where the policy is in shadow.
    pub(crate) fn hear(&mut self, proposal: Proposal, policy: &Arc<str>, enforced: bool) {
        if enforced {
            if proposal.action > self.action {
                self.policy = Some(Arc::clone(policy));
            }
            self.combine(proposal);
        } else if let Some(seen) = proposal.seen
            && self.would.as_ref().is_none_or(|would| proposal.action > would.action)
        {
            self.would = Some(Would { action: proposal.action, policy: Arc::clone(policy), kind: seen.kind });
        }
    }

    /// Combines a proposal with what was proposed before: the strictest wins, and the longest delay.
    pub(crate) fn combine(&mut self, proposal: Proposal) {
        self.delay = self.delay.max(proposal.delay);
        self.hint = self.hint.take().or(proposal.hint);
        if proposal.action > self.action {
            self.action = proposal.action;
            self.seen = proposal.seen.or(self.seen);
            self.refusal = proposal.refusal.or(self.refusal.take());
        } else if self.seen.is_none() && proposal.action == self.action {
            // Of equal ones the first says why: a kill switch before a loop, a loop before a budget.
            self.seen = proposal.seen;
            self.refusal = self.refusal.take().or(proposal.refusal);
        }
    }

    /// A budget may have reached one of its stages: the call passes, and its verdict says that there is something to
    /// know.
    pub(crate) fn warn_of(&mut self, stage: Option<String>) {
        if stage.is_some() {
            self.action = self.action.max(Action::Warn);
        }
        self.budget_warning = stage;
    }

    /// What is left of a verdict that somebody has lifted: what there is to tell is told all the same.
    pub(crate) fn told(&self) -> Action {
        match (&self.hint, &self.seen) {
            (Some(_), _) => Action::Hint,
            (None, Some(_)) => Action::Warn,
            (None, None) => Action::Allow,
        }
    }

    /// The headers that tell the verdict. A request that no policy enforces anything on hears nothing.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        headers.insert(VERDICT, HeaderValue::from_static(self.action.as_str()));
        if let Some(seen) = &self.seen {
            headers.insert(WARNING, HeaderValue::from_static("loop_warn"));
            headers.insert(COUNT, HeaderValue::from(seen.count));
            if let Ok(value) = HeaderValue::from_str(&seen.to_string()) {
                headers.insert(LOOP, value);
            }
        }
        if let Some(Ok(value)) = self.budget_warning.as_deref().map(HeaderValue::from_str) {
            headers.insert(BUDGET, value);
        }
    }
}

impl Refused {
    /// The headers of the refusal.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(if self.retry { "true" } else { "false" }));
        if let Some((limit, policy)) = &self.rate_limit
            && let (Ok(limit), Ok(policy)) = (HeaderValue::from_str(limit), HeaderValue::from_str(policy))
        {
            headers.insert(RATE_LIMIT, limit);
            headers.insert(RATE_LIMIT_POLICY, policy);
        }
    }
}

impl Seen {
    /// What the headers tell of a finding.
    pub(crate) fn of(finding: &Finding) -> Self {
        Self { kind: finding.kind, count: finding.count as u64, period: finding.period as u64 }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kind={}; count={}", self.kind, self.count)?;
        if self.kind == Kind::Cycle { write!(f, "; period={}", self.period) } else { Ok(()) }
    }
}

/// The session of a request, told with every answer.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("x-loopbreaker-session");
const VERDICT: HeaderName = HeaderName::from_static("x-loopbreaker-verdict");
const WARNING: HeaderName = HeaderName::from_static("x-loopbreaker-warning");
const COUNT: HeaderName = HeaderName::from_static("x-loopbreaker-loop-count");
const LOOP: HeaderName = HeaderName::from_static("x-loopbreaker-loop");
const BUDGET: HeaderName = HeaderName::from_static("x-loopbreaker-budget");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::HeaderMap;
    use loopbreaker::{Action, Kind};

    use super::{Proposal, Seen, Verdict};

    fn proposal(action: Action, kind: Kind) -> Proposal {
        Proposal {
            action,
            seen: Some(Seen { kind, count: 6, period: 2 }),
            hint: None,
            delay: Duration::ZERO,
            refusal: None,
        }
    }

    fn headers(verdict: &Verdict) -> Vec<String> {
        let mut headers = HeaderMap::new();
        verdict.add_headers(&mut headers);
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn the_strictest_proposal_wins_in_any_order() {
        for order in
            [[Action::Warn, Action::Reject, Action::Hint], [Action::Reject, Action::Hint, Action::Warn]]
        {
            let mut verdict = Verdict::allow();
            for action in order {
                let kind = if action == Action::Reject { Kind::Cycle } else { Kind::Repeat };
                verdict.combine(proposal(action, kind));
            }
            assert_eq!(verdict.action, Action::Reject);
            assert_eq!(verdict.seen.map(|seen| seen.kind), Some(Kind::Cycle));
        }
    }

    #[test]
    fn a_cycle_tells_its_period_and_others_do_not() {
        let mut verdict = Verdict::allow();
        verdict.combine(proposal(Action::Warn, Kind::Cycle));
        assert_eq!(
            headers(&verdict),
            [
                "x-loopbreaker-verdict: warn",
                "x-loopbreaker-warning: loop_warn",
                "x-loopbreaker-loop-count: 6",
                "x-loopbreaker-loop: kind=cycle; count=6; period=2",
            ]
        );
        let mut verdict = Verdict::allow();
        verdict.combine(proposal(Action::Hint, Kind::Repeat));
        assert_eq!(headers(&verdict)[3], "x-loopbreaker-loop: kind=repeat; count=6");
    }

    #[test]
    fn a_request_without_a_loop_is_allowed_and_says_so() {
        assert_eq!(headers(&Verdict::allow()), ["x-loopbreaker-verdict: allow"]);
    }
}
