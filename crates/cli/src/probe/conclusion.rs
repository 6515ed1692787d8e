//! What the verdicts on a synthetic loop come to.

use std::fmt;

use loopbreaker::Action;
use loopbreaker_dialect::Refusal;

use super::synthetic::Judged;

/// What the verdicts come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conclusion {
    /// The loop was seen, and something was done about it.
    Enforced {
        /// Each action that was taken, and the request at which it was first.
        actions: Vec<(Action, usize)>,
    },
    /// The gateway sees the loop and lets it pass.
    Shadow,
    /// The gateway judges in shadow, and does not say here what it sees.
    Silent,
    /// Something else refused the requests before there was a loop: a limit, a kill switch.
    Stopped {
        /// The word of the refusal.
        code: String,
        /// The request that was refused.
        request: usize,
    },
    /// The loop went through.
    Ignored,
}

impl Conclusion {
    /// What was told of each request, and whether a guard in shadow says that it sees loops.
    pub(super) fn of(judged: &[Judged], seen_in_shadow: Option<bool>) -> Self {
        if is_in_shadow(judged) {
            return match seen_in_shadow {
                Some(true) => Self::Shadow,
                Some(false) => Self::Ignored,
                None => Self::Silent,
            };
        }
        let mut actions: Vec<(Action, usize)> = Vec::new();
        for Judged { verdict, seen, request, .. } in judged.iter().filter(|judged| !is_stopped(judged)) {
            if let (Some(action), Some(_)) = (*verdict, seen)
                && action > actions.last().map_or(Action::Allow, |(strictest, _)| *strictest)
            {
                actions.push((action, *request));
            }
        }
        if !actions.is_empty() {
            return Self::Enforced { actions };
        }
        match judged.iter().find(|judged| judged.is_refused()) {
            Some(Judged { code, request, status, .. }) => Self::Stopped {
                code: code.clone().unwrap_or_else(|| format!("status {status}")),
                request: *request,
            },
            None => Self::Ignored,
        }
    }

    /// Whether the guard is there and looks; `None` where that is not known.
    pub(super) const fn is_alive(&self) -> Option<bool> {
        match self {
            Self::Enforced { .. } | Self::Shadow => Some(true),
            Self::Stopped { .. } | Self::Silent => None,
            Self::Ignored => Some(false),
        }
    }

    /// What to do next, where something is to be done.
    pub(super) const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Enforced { .. } | Self::Shadow => None,
            Self::Silent => Some(
                "probe the address of its API (`admin_listen`), or send `POST /api/v1/probe` there with an operator's token",
            ),
            Self::Stopped { .. } => Some(
                "leave the tenant `loopbreaker-probe` out of the limit or kill switch that stops it, or wait until \
                 there is room again, and probe once more",
            ),
            Self::Ignored => Some("`loopbreaker check -c FILE` says which policies its config puts in force"),
        }
    }

    /// What is in force, in one word.
    pub(super) const fn mode(&self) -> &'static str {
        match self {
            Self::Enforced { .. } | Self::Stopped { .. } => "enforce",
            Self::Shadow | Self::Silent => "shadow",
            Self::Ignored => "none",
        }
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforced { actions } => {
                let told: Vec<String> = actions
                    .iter()
                    .map(|(action, request)| format!("{action} at request {request}"))
                    .collect();
                write!(f, "the guard is alive: {}", told.join(", "))
            }
            Self::Shadow => f.write_str("the guard is alive, but in shadow: nothing is enforced"),
            Self::Silent => f.write_str(
                "whether the guard is alive is not known: it is in shadow, and tells only its operators what it sees",
            ),
            Self::Stopped { code, request } => write!(
                f,
                "whether the guard is alive is not known: request {request} was refused before there was a loop: {code}"
            ),
            Self::Ignored => f.write_str(
                "the gateway answers, but the loop went through: no policy acts on loops in tool calls of \
                 POST /v1/chat/completions",
            ),
        }
    }
}

/// Whether something else than a loop is what a request was refused for, even if a loop was seen beside it.
fn is_stopped(judged: &Judged) -> bool {
    let code = judged.code.as_deref();
    judged.verdict == Some(Action::Reject) && code.is_some_and(|code| code != Refusal::LoopDetected.code())
}

/// Whether nothing is told of any verdict.
pub(super) fn is_in_shadow(judged: &[Judged]) -> bool {
    judged.iter().all(|judged| judged.verdict.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::SeenLoop;

    fn judged(verdicts: &[Option<Action>]) -> Vec<Judged> {
        let judge = |(index, verdict): (usize, &Option<Action>)| Judged {
            request: index + 1,
            status: if *verdict == Some(Action::Reject) { 429 } else { 200 },
            verdict: *verdict,
            seen: verdict
                .filter(|verdict| *verdict > Action::Allow)
                .map(|_| SeenLoop { kind: "repeat".into(), count: index as u64 }),
            code: None,
        };
        verdicts.iter().enumerate().map(judge).collect()
    }

    #[test]
    fn each_rung_is_told_with_its_first_request() {
        use Action::{Allow, Hint, Reject, Throttle, Warn};
        let ladder = [Allow, Allow, Warn, Hint, Hint, Throttle, Reject].map(Some);
        let conclusion = Conclusion::of(&judged(&ladder), None);
        assert_eq!((conclusion.is_alive(), conclusion.hint()), (Some(true), None));
        assert_eq!(
            conclusion.to_string(),
            "the guard is alive: warn at request 3, hint at request 4, throttle at request 6, reject at request 7"
        );
    }

    #[test]
    fn a_gateway_that_never_tells_a_verdict_is_in_shadow_and_alive_when_it_says_that_it_sees_loops() {
        let told = |seen| {
            let conclusion = Conclusion::of(&judged(&[None, None, None]), seen);
            (conclusion.mode(), conclusion.is_alive(), conclusion.hint().is_some())
        };
        assert_eq!(told(Some(true)), ("shadow", Some(true), false));
        assert_eq!(told(Some(false)), ("none", Some(false), true));
        assert_eq!(told(None), ("shadow", None, true));
    }

    #[test]
    fn a_loop_that_goes_through_means_that_nobody_guards() {
        let conclusion = Conclusion::of(&judged(&[Some(Action::Allow); 12]), None);
        assert_eq!((conclusion.mode(), conclusion.is_alive()), ("none", Some(false)));
    }

    #[test]
    fn a_refusal_for_something_else_is_not_the_guards_even_where_it_has_warned_of_a_loop() {
        use Action::{Allow, Reject};
        let mut refused = judged(&[Some(Allow), Some(Allow), Some(Reject)]);
        let at_last = refused.last_mut().unwrap();
        at_last.code = Some("budget_exceeded".into());
        assert!(at_last.seen.is_some());
        let conclusion = Conclusion::of(&refused, None);
        assert_eq!(conclusion, Conclusion::Stopped { code: "budget_exceeded".into(), request: 3 });
    }

    #[test]
    fn a_refusal_without_a_loop_proves_nothing_about_loops_and_says_what_to_do() {
        let mut refused = judged(&[Some(Action::Allow), Some(Action::Reject)]);
        refused[1] = Judged { seen: None, code: Some("budget_exceeded".into()), ..refused[1].clone() };
        let conclusion = Conclusion::of(&refused, None);
        assert_eq!(conclusion, Conclusion::Stopped { code: "budget_exceeded".into(), request: 2 });
        assert_eq!(conclusion.is_alive(), None);
        assert!(conclusion.hint().is_some());
    }
}
