//! Three gateways and a real Redis, alone or as a cluster: together they do what one does.

mod away;
mod lost;
mod orders;
mod secure;
mod settings;
mod threads;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lab::{Bench, Lab, until};
use crate::redis::{Cluster, Redis};
use crate::talk::{Chat, looping_in_every_dialect, question};
use crate::wire::{Reply, request};

/// Gateways that share their state. A busy machine is not taken for a dead Redis.
fn gateways(url: &str, config: &str) -> Vec<Lab> {
    joined(url, config, Bench::new)
}

/// The same before one provider.
fn gateways_before(url: &str, config: &str, provider: &str) -> Vec<Lab> {
    joined(url, config, || Bench::new().upstream(provider))
}

fn joined(url: &str, config: &str, bench: impl Fn() -> Bench) -> Vec<Lab> {
    let config = sharing(url, config);
    let labs: Vec<Lab> = (0..3).map(|_| bench().config(&config).start()).collect();
    for lab in &labs {
        until("it has found the others", || is_whole(lab));
    }
    labs
}

/// A config with this state.
fn sharing(url: &str, config: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("state: \"{url}{sign}timeout=5000ms\"\n{config}")
}

/// Whether nothing of a gateway's state is missing.
fn is_whole(lab: &Lab) -> bool {
    lab.metric("loopbreaker_degraded{part=\"state\"}") == 0.0
}

/// What a client sees of a verdict.
fn seen(reply: &Reply) -> (u16, String, String) {
    let header = |name| reply.header(name).unwrap_or("none").to_owned();
    (reply.status, header("x-loopbreaker-verdict"), header("x-loopbreaker-loop"))
}

/// An agent that goes round until it is stopped, and once more with the same transcript.
fn verdicts(labs: &[Lab], path: &str, bodies: &[String]) -> Vec<(u16, String, String)> {
    let mut next = labs.iter().cycle();
    let headers = [("authorization", "Bearer sk-test"), ("content-type", "application/json")];
    bodies.iter().map(|body| seen(&next.next().unwrap().post(path, &headers, body))).collect()
}

#[test]
fn a_loop_that_is_spread_over_three_gateways_is_found_exactly_as_by_one() {
    let redis = Redis::start();
    let (one, three) = (vec![Lab::new()], gateways(&redis.url(), ""));
    let dialects = looping_in_every_dialect(1).len();
    for dialect in 0..dialects {
        let path = looping_in_every_dialect(1)[dialect].0;
        let mut bodies: Vec<String> =
            (1..=8).map(|times| looping_in_every_dialect(times)[dialect].1.clone()).collect();
        // The client that was refused tries again as it is.
        bodies.extend(std::iter::repeat_n(bodies[7].clone(), 3));
        let alone = verdicts(&one, path, &bodies);
        assert!(alone.iter().any(|(status, ..)| *status == 429), "{path}: {alone:?}");
        assert_eq!(verdicts(&three, path, &bodies), alone, "{path}");
    }
}

#[test]
fn a_transcript_has_one_session_at_all_of_them_also_after_a_compaction() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    let session = |lab: &Lab, chat: &Chat| {
        lab.chat(&[], chat.body()).header("x-loopbreaker-session").unwrap().to_owned()
    };
    let begun = Chat::new("mend it").call("ls", "a").call("cat a", "one").call("cat b", "two");
    let first = session(&labs[0], &begun);
    let later = begun.call("cat c", "three").call("cat d", "four");
    assert_eq!(session(&labs[1], &later), first);
    let compacted = later.without_history(6).call("cat e", "five");
    assert_eq!(session(&labs[2], &compacted), first);
    assert_ne!(session(&labs[0], &Chat::new("another").call("ls", "a")), first);
}

#[test]
fn equal_requests_are_counted_wherever_they_arrive() {
    let redis = Redis::start();
    let policy = "policies: [{ id: p, spec: { loop_detection: { enabled: true, \
                  window_seconds: 60, threshold_identical_requests: 4, action: reject } } }]";
    let labs = gateways(&redis.url(), policy);
    let statuses: Vec<u16> =
        (0..6).map(|turn| labs[turn % 3].chat(&[], question("the same")).status).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429]);
    let other = labs[0].chat(&[("x-tenant-id", "other")], question("the same"));
    assert_eq!(other.status, 200, "another tenant counts for itself");
}

/// How many of 64 clients' calls get through a budget of 1,000.
fn admitted(url: &str) -> usize {
    let budget =
        "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1000, period: 1h }] } }]";
    let labs = gateways(url, budget);
    let admitted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..64_usize {
            let (labs, admitted) = (&labs, &admitted);
            scope.spawn(move || {
                let mut wire = labs[client % 3].wire();
                for turn in 0..18 {
                    let body = question(&format!("{client} asks {turn}"));
                    wire.send(&request(
                        "POST",
                        "/v1/chat/completions",
                        &[("authorization", "Bearer sk")],
                        body.as_bytes(),
                    ));
                    let reply = wire.reply();
                    assert!(reply.status == 200 || reply.code() == "budget_exceeded", "{}", reply.text());
                    admitted.fetch_add(usize::from(reply.status == 200), Ordering::Relaxed);
                }
            });
        }
    });
    let sent: usize = labs.iter().map(Lab::sent).sum();
    assert_eq!(sent, admitted.load(Ordering::Relaxed), "what was refused was not sent");
    sent
}

#[test]
fn a_budget_of_a_thousand_calls_lets_a_thousand_through_and_none_more() {
    assert_eq!(admitted(&Redis::start().url()), 1_000);
}

#[test]
fn a_budget_is_as_exact_in_a_cluster() {
    assert_eq!(admitted(&Cluster::start().url()), 1_000);
}

/// A budget of three calls for each tenant, and no second one that is equal.
const THREE: &str = "policies:\n  - id: p\n    spec:\n      \
    loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 2, action: reject }\n      \
    rules: [{ id: three, key: tenant, requests: 3, period: 1h }]";

#[test]
fn a_held_call_whose_client_has_gone_takes_nothing_of_a_common_budget() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), THREE);
    let (tenant, session) = (("x-tenant-id", "team"), ("x-session-id", "run-17"));
    assert_eq!(labs[0].chat(&[tenant, session], question("first")).status, 200);
    assert_eq!(labs[0].post("/api/v1/sessions/run-17/pause", &[tenant], "").status, 200);
    for words in ["second", "third"] {
        let mut wire = labs[0].wire();
        wire.send(&request("POST", "/v1/chat/completions", &[tenant, session], question(words).as_bytes()));
        until("it is held", || labs[0].metric("loopbreaker_held") == 1.0);
        drop(wire);
        until("its place is free again", || labs[0].metric("loopbreaker_held") == 0.0);
    }
    let (mut asked, mut admitted) = (0, 0);
    until("what they had reserved is given back", || {
        asked += 1;
        admitted += usize::from(labs[1].chat(&[tenant], question(&format!("another {asked}"))).status == 200);
        admitted == 2
    });
    assert_eq!(labs[2].chat(&[tenant], question("one more")).status, 429);
}

#[test]
fn what_the_decision_endpoint_refuses_takes_nothing_of_a_common_budget_and_what_it_allows_does() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), THREE);
    let headers = [("x-original-method", "POST"), ("x-original-uri", "/v1/chat/completions")];
    let ask = |lab: &Lab, words: &str| lab.post("/v1/decision", &headers, question(words));
    assert_eq!(ask(&labs[0], "the same").status, 200);
    for lab in labs.iter().cycle().take(5) {
        assert_eq!(ask(lab, "the same").code(), "loop_detected");
    }
    let (mut asked, mut admitted) = (0, 0);
    until("what they had reserved is given back", || {
        asked += 1;
        admitted += usize::from(ask(&labs[1], &format!("another {asked}")).status == 200);
        admitted == 2
    });
    assert_eq!(ask(&labs[2], "one more").code(), "budget_exceeded");
}

#[test]
fn a_pause_at_one_holds_a_call_at_another_until_a_third_resumes_it() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "pause: { hold: 20s }");
    let ask = |lab: &Lab, words: &str| {
        let mut wire = lab.wire();
        let headers = [("x-session-id", "run-17"), ("authorization", "Bearer sk-test")];
        wire.send(&request("POST", "/v1/chat/completions", &headers, question(words).as_bytes()));
        wire
    };
    assert_eq!(ask(&labs[0], "first").reply().status, 200);
    // The one that is told has never seen the session.
    until("it is known there, too", || labs[2].post("/api/v1/sessions/run-17/pause", &[], "").status == 200);
    let paused = Instant::now();
    let mut held = loop {
        let mut wire = ask(&labs[1], "second");
        if labs[1].metric("loopbreaker_held") == 1.0 {
            break wire;
        }
        until("it is answered or held", || {
            labs[1].metric("loopbreaker_held") == 1.0 || wire.answers_so_far() > 0
        });
        if labs[1].metric("loopbreaker_held") == 1.0 {
            break wire;
        }
        assert!(paused.elapsed() < Duration::from_secs(1), "the pause takes too long");
    };
    let sent = labs[1].sent();
    assert_eq!(labs[0].post("/api/v1/sessions/run-17/resume", &[], "").status, 200);
    assert_eq!(held.reply().status, 200);
    assert_eq!(labs[1].sent(), sent + 1);

    assert_eq!(labs[0].post("/api/v1/sessions/run-17/pause", &[], "").status, 200);
    let mut held = ask(&labs[1], "third");
    until("it is held", || labs[1].metric("loopbreaker_held") == 1.0);
    let order = labs[2].post("/api/v1/sessions/run-17/reject", &[], r#"{"message":"enough"}"#);
    assert_eq!(order.status, 200);
    let refused = held.reply();
    assert_eq!((refused.status, refused.code().as_str()), (403, "rejected_by_operator"));
    until("it is refused at all of them", || labs.iter().all(|lab| ask(lab, "third").reply().status == 403));
    assert_eq!(ask(&labs[2], "third").reply().code(), "rejected_by_operator");
    until("the next one goes on", || ask(&labs[0], "fourth").reply().status == 200);
}

#[test]
fn a_loop_that_one_gateway_paused_goes_on_at_all_of_them_when_it_is_resumed() {
    let redis = Redis::start();
    let ladder =
        "policies: [{ id: p, spec: { tool_loops: { enabled: true, ladder: [hint, pause, reject] } } }]";
    let labs = gateways(&redis.url(), &format!("pause: {{ hold: 300ms }}\n{ladder}"));
    let ask = |lab: &Lab, times: usize| {
        let chat = (0..times).fold(Chat::new("mend it"), |chat, _| chat.call("ls", "a"));
        lab.chat(&[("x-session-id", "run-17")], chat.body())
    };
    for (lab, times) in [(&labs[0], 1), (&labs[1], 2), (&labs[2], 3)] {
        assert_eq!(ask(lab, times).status, 200);
    }
    let held = ask(&labs[1], 4);
    assert_eq!((held.status, held.header("x-loopbreaker-verdict")), (429, Some("pause")));
    assert_eq!(labs[0].post("/api/v1/sessions/run-17/resume", &[], "").status, 200);
    for lab in [&labs[0], &labs[2], &labs[1]] {
        until("it goes on", || ask(lab, 4).status == 200);
    }
    assert_eq!(ask(&labs[2], 4).header("x-loopbreaker-verdict"), Some("hint"), "it is not paused again");
}

#[test]
fn a_call_that_a_common_budget_paused_goes_on_when_it_is_resumed_at_another_gateway() {
    let redis = Redis::start();
    let rule = "{ id: r, key: session, requests: 1, on_exceed: pause }";
    let policy = format!("policies: [{{ id: p, spec: {{ rules: [{rule}] }} }}]");
    let labs = gateways(&redis.url(), &format!("pause: {{ hold: 20s }}\n{policy}"));
    let session = [("x-session-id", "run-17")];
    assert_eq!(labs[0].chat(&session, question("a")).status, 200);
    let held = std::thread::scope(|scope| {
        let held = scope.spawn(|| labs[1].chat(&session, question("b")));
        until("it is held", || labs[1].metric("loopbreaker_held") == 1.0);
        until("it is resumed", || labs[2].post("/api/v1/sessions/run-17/resume", &[], "").status == 200);
        held.join().expect("it is answered")
    });
    assert_eq!(held.status, 200);
}

#[test]
fn a_pause_that_was_ended_elsewhere_does_not_come_back_with_a_restart() {
    let redis = Redis::start();
    let mut labs = gateways(&redis.url(), "pause: { hold: 300ms }");
    let ask = |lab: &Lab| lab.chat(&[("x-session-id", "run-17")], question("a")).status;
    assert_eq!(ask(&labs[0]), 200);
    until("it is paused", || labs[0].post("/api/v1/sessions/run-17/pause", &[], "").status == 200);
    assert_eq!(ask(&labs[0]), 429);
    assert_eq!(labs[2].post("/api/v1/sessions/run-17/resume", &[], "").status, 200);
    until("it goes on", || ask(&labs[0]) == 200);
    // A pause that may still be on its way to the others is left alone for two seconds.
    std::thread::sleep(Duration::from_secs(2));
    let restarted = labs.remove(0).restarted();
    until("it has found the others", || is_whole(&restarted));
    assert_eq!(ask(&restarted), 200);
}

#[test]
fn words_for_a_session_reach_its_model_wherever_it_calls_next() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    let ask = |lab: &Lab, words: &str| lab.chat(&[("x-session-id", "run-17")], Chat::new(words).body());
    assert_eq!(ask(&labs[0], "first").status, 200);
    let inject = || labs[0].post("/api/v1/sessions/run-17/inject", &[], r#"{"message":"look at the log"}"#);
    until("the log knows the session", || (200..300).contains(&inject().status));
    until("the model hears it", || {
        assert_eq!(ask(&labs[1], "second").status, 200);
        labs[1]
            .mock
            .requests()
            .iter()
            .any(|sent| String::from_utf8_lossy(&sent.body).contains("look at the log"))
    });
}

#[test]
fn a_primary_that_dies_in_the_middle_of_traffic_costs_no_request_and_no_session() {
    let mut cluster = Cluster::start();
    let labs = gateways(&cluster.url(), "");
    let ask = |lab: &Lab, chat: &Chat| {
        let reply = lab.chat(&[("x-tenant-id", "acme")], chat.body());
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.header("x-loopbreaker-session").unwrap().to_owned()
    };
    let mut chat = Chat::new("mend it").call("ls", "a");
    let session = ask(&labs[0], &chat);
    // All keys of a tenant lie in one slot, named by a hash of its name.
    let tag = format!("lb:{{{:016x}}}:", twox_hash::XxHash3_64::oneshot(b"acme"));
    cluster.primary_of(&tag).kill();
    for turn in 0..30 {
        chat = chat.call("cat", &format!("page {turn}"));
        assert_eq!(ask(&labs[turn % 3], &chat), session, "turn {turn}");
    }
    for lab in &labs {
        until("the new primary is found", || is_whole(lab));
    }
    for (turn, lab) in labs.iter().enumerate() {
        chat = chat.call("cat", &format!("last page {turn}"));
        assert_eq!(ask(lab, &chat), session);
    }
}
