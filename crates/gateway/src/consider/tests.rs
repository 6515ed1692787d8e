use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use loopbreaker::Action;
use loopbreaker_config::Config;
use loopbreaker_dialect::{Dialect, Refusal};
use loopbreaker_telemetry::{Mode, Telemetry};

use super::{Looked, consider};
use crate::secret::Secret;
use crate::state::Shared;

/// A gateway without a network: requests go in, verdicts come out.
struct Bench(Shared);

/// What is told of one request.
#[derive(Debug)]
struct Told {
    action: Action,
    session: String,
    modes: Vec<Mode>,
    code: Option<&'static str>,
    may_tell: bool,
}

impl Bench {
    fn with(config: &str) -> Self {
        let config = Config::parse(config).unwrap();
        let shared = Shared::new(config, Secret::random().unwrap(), Telemetry::quiet(), None);
        shared.trusts_tenant_header.store(true, std::sync::atomic::Ordering::Relaxed);
        Self(shared)
    }

    fn ask(&self, body: &str, headers: &[(&'static str, &'static str)]) -> Told {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers: HeaderMap = headers.iter().map(pair).collect();
        let settings = self.0.settings();
        let body = Bytes::from(body.to_owned());
        let looked = Looked {
            method: "POST",
            path: "/v1/chat/completions",
            query: "",
            headers: &headers,
            provider: loopbreaker_config::Dialect::OpenAi,
            dialect: Some(Dialect::Chat),
            body: Some(&body),
            came: Some(&body),
        };
        let mut case = consider(&self.0, &settings, &looked);
        case.keep_transcript(&self.0, looked.dialect);
        Told {
            action: case.verdict.action,
            session: case.session.to_string(),
            modes: case.verdict.notes.iter().map(|note| note.mode).collect(),
            code: case.verdict.refusal.as_ref().map(|refused| refused.code).map(Refusal::code),
            may_tell: case.is_told(),
        }
    }

    /// The verdicts on the requests of an agent that makes the same call again and again.
    fn loop_of(&self, requests: usize, headers: &[(&'static str, &'static str)]) -> Vec<Action> {
        (0..requests).map(|calls| self.ask(&transcript(calls, ""), headers).action).collect()
    }
}

/// The request after so many equal calls, and what the user says then.
fn transcript(calls: usize, words: &str) -> String {
    let mut messages = vec![r#"{"role":"user","content":"Mend the build."}"#.to_owned()];
    for index in 0..calls {
        messages.push(format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"c{index}","type":"function","function":{{"name":"bash","arguments":"{{\"command\":\"make\"}}"}}}}]}}"#
        ));
        messages
            .push(format!(r#"{{"role":"tool","tool_call_id":"c{index}","content":"nothing to be done"}}"#));
    }
    if !words.is_empty() {
        messages.push(format!(r#"{{"role":"user","content":"{words}"}}"#));
    }
    format!(r#"{{"messages":[{}],"model":"m"}}"#, messages.join(","))
}

use Action::{Allow, Hint, Reject, Throttle, Warn};

#[test]
fn the_default_ladder_is_climbed_rung_by_rung() {
    let bench = Bench::with("");
    assert_eq!(bench.loop_of(7, &[]), [Allow, Allow, Warn, Hint, Hint, Throttle, Reject]);
}

#[test]
fn an_unchanged_transcript_stays_refused_and_a_changed_one_is_judged_afresh() {
    let bench = Bench::with("");
    bench.loop_of(7, &[]);
    assert_eq!(bench.ask(&transcript(6, ""), &[]).action, Reject, "it is the same");
    assert_eq!(bench.ask(&transcript(6, "Look at the Makefile."), &[]).action, Allow, "the user has spoken");
    let other = transcript(6, "").replacen(
        r#"\"make\"}"}}]},{"role":"tool","tool_call_id":"c5""#,
        r#"\"ls\"}"}}]},{"role":"tool","tool_call_id":"c5""#,
        1,
    );
    assert_eq!(bench.ask(&other, &[]).action, Allow, "another call was made");
    assert_eq!(bench.ask(&transcript(2, ""), &[]).action, Warn, "history was dropped");
}

#[test]
fn a_session_that_was_never_seen_is_hinted_once_before_it_is_stopped() {
    let bench = Bench::with("");
    assert_eq!(bench.ask(&transcript(9, ""), &[]).action, Hint);
    assert_eq!(bench.ask(&transcript(9, ""), &[]).action, Hint, "a retry carries the same hint");
    assert_eq!(
        bench.ask(&transcript(10, ""), &[]).action,
        Reject,
        "and a restart forgives no more than that"
    );
}

#[test]
fn strikes_survive_a_compaction_under_the_same_name() {
    let bench = Bench::with("");
    let named = &[("x-session-id", "run-1")];
    assert_eq!(bench.loop_of(6, named).last(), Some(&Throttle));
    let compacted = transcript(3, "").replace("Mend the build.", "Summary: the build was looked at.");
    assert_eq!(bench.ask(&compacted, named).action, Throttle, "the history was rewritten, the loop went on");
}

#[test]
fn two_tenants_never_influence_each_other() {
    let bench = Bench::with("");
    bench.loop_of(7, &[("x-tenant-id", "plumless")]);
    // The CRC-32 of both names is the same.
    assert_eq!(bench.loop_of(4, &[("x-tenant-id", "buckeroo")]), [Allow, Allow, Warn, Hint]);
    let session = |tenant| bench.ask(&transcript(1, ""), &[("x-tenant-id", tenant)]).session;
    assert_ne!(session("plumless"), session("buckeroo"));
}

#[test]
fn shadow_sees_everything_and_does_nothing() {
    let bench = Bench::with("global_shadow: true");
    assert_eq!(bench.loop_of(7, &[]), [Allow; 7]);
    let told = bench.ask(&transcript(8, ""), &[]);
    assert!(!told.may_tell && told.modes == [Mode::Shadow], "{told:?}");
}

#[test]
fn a_session_that_is_held_out_is_only_observed_and_looks_like_any_other() {
    let bench = Bench::with("holdout: 100%");
    assert_eq!(bench.loop_of(8, &[]), [Allow; 8]);
    let told = bench.ask(&transcript(9, ""), &[]);
    assert!(told.may_tell && told.modes == [Mode::Shadow], "{told:?}");
}

#[test]
fn a_kill_switch_is_stronger_than_everything_and_for_one_tenant_only() {
    let bench = Bench::with("kill_switches: [{ tenant: acme, reason: enough }]");
    let told = bench.ask(&transcript(0, ""), &[("x-tenant-id", "acme")]);
    assert_eq!((told.action, told.code), (Reject, Some("kill_switch")));
    assert_eq!(bench.ask(&transcript(0, ""), &[("x-tenant-id", "other")]).action, Allow);
    let expired = Bench::with("kill_switches: [{ tenant: acme, expires_at: 2001-01-01T00:00:00Z }]");
    assert_eq!(expired.ask(&transcript(0, ""), &[("x-tenant-id", "acme")]).action, Allow);
}

#[test]
fn a_warning_skips_no_budget() {
    let bench = Bench::with(
        "policies:\n  - id: a\n    spec:\n      tool_loops: { enabled: true, ladder: [warn] }\n      rules:\n        - { id: tiny, key: tenant, tokens_per_minute: 1 }\n",
    );
    let told = bench.ask(&transcript(5, ""), &[]);
    assert_eq!((told.action, told.code), (Reject, Some("budget_exceeded")));
}

#[test]
fn two_policies_that_see_one_loop_let_it_through_once_together() {
    let policy = |id| {
        format!("  - id: {id}\n    spec: {{ tool_loops: {{ enabled: true, ladder: [hint, reject] }} }}\n")
    };
    let bench = Bench::with(&format!("policies:\n{}{}", policy("a"), policy("b")));
    assert_eq!(bench.loop_of(5, &[]), [Allow, Allow, Warn, Hint, Reject]);
    assert_eq!(bench.ask(&transcript(4, ""), &[]).action, Reject);
}

#[test]
fn a_body_that_is_no_request_is_let_through() {
    let bench = Bench::with("");
    for body in ["", "not json", "[1,2]", r#"{"messages":7}"#, "\u{0}"] {
        assert_eq!(bench.ask(body, &[]).action, Allow, "{body:?}");
    }
}
