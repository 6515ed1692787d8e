//! Several processes with one database: one order of events, one chain of deeds, one word of an operator.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopbreaker_observatory::{
    Arrival, AuditCheck, Caller, Observatory, Options, Order, Topic, verify_audit,
};
use loopbreaker_record::{DecisionLog, Moment, TraceId};
use serde_json::{Value, json};

use crate::backend::server;
use crate::policies::Ladders;

fn log(number: u32, session: &str) -> Arrival {
    let log = DecisionLog::builder("a", "coder", "1.0.0")
        .intent(format!("intent {number}"))
        .session(session)
        .build(TraceId::derived(&[b"several", &number.to_le_bytes()]), Moment::from_millis(0))
        .unwrap();
    Arrival { tenant: "t".into(), session: None, log }
}

/// Puts a policy as an operator does.
async fn put(observatory: &Observatory, id: &str, spec: &Value) -> u16 {
    let body = http_body_util::Full::new(bytes::Bytes::from(json!({ "spec": spec }).to_string()));
    let request = hyper::Request::put(format!("/api/v1/policies/{id}")).body(body).unwrap();
    observatory.handle(request, &Caller::local()).await.status().as_u16()
}

fn two() -> (Options, Arc<Observatory>, Arc<Observatory>) {
    let options = Options::url(server().new_database());
    let open = || Arc::new(Observatory::open(options.clone()).unwrap());
    let (one, other) = (open(), open());
    (options, one, other)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn events_of_all_writers_are_told_by_all_in_one_order() {
    let (_, one, other) = two();
    let mut listeners = [&one, &other].map(|process| process.subscribe(vec![Topic::Graph], None, Some(0)));
    let write = |process: &Arc<Observatory>, first: u32| {
        let process = Arc::clone(process);
        tokio::spawn(async move {
            for number in first..first + 50 {
                process.ingest(log(number, &format!("run-{}", number % 3))).await.unwrap().unwrap();
            }
        })
    };
    let (a, b) = (write(&one, 0), write(&other, 1_000));
    a.await.unwrap();
    b.await.unwrap();
    let mut told = Vec::new();
    for listener in &mut listeners {
        let mut heard = Vec::new();
        for _ in 0..100 {
            let next = tokio::time::timeout(Duration::from_secs(20), listener.next()).await.unwrap();
            heard.push((next.seq, next.body()["node"]["trace_id"].clone()));
        }
        told.push(heard);
    }
    assert_eq!(told[0], told[1], "the same events with the same numbers in the same order");
    assert!(told[0].windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[tokio::test]
async fn a_session_that_goes_on_in_another_process_keeps_its_window_and_its_counts() {
    let (_, one, other) = two();
    let same = |number: u32| {
        let mut arrival = log(number, "run");
        arrival.log.cognition.intent = "build".to_owned();
        arrival
    };
    let mut scores = Vec::new();
    for number in 0..5 {
        let process = if number % 2 == 0 { &one } else { &other };
        let accepted = process.ingest(same(number)).await.unwrap().unwrap();
        let log: Value = serde_json::from_str(accepted.log.get()).unwrap();
        scores.push(log["cognition"]["entropy_score"].as_f64().unwrap());
    }
    assert_eq!(scores, [1.0, 0.5, 0.3333, 0.25, 0.2]);
}

/// A step that names its parent, and a session if it is told one.
fn behind(number: u32, parent: Option<u32>, session: Option<&str>) -> Arrival {
    let trace = |number: u32| TraceId::derived(&[b"behind", &number.to_le_bytes()]);
    let mut log = DecisionLog::builder("a", "coder", "1.0.0").intent(format!("intent {number}"));
    if let Some(parent) = parent {
        log = log.after(trace(parent));
    }
    if let Some(session) = session {
        log = log.session(session);
    }
    Arrival {
        tenant: "t".into(),
        session: None,
        log: log.build(trace(number), Moment::from_millis(0)).unwrap(),
    }
}

#[tokio::test]
async fn a_session_that_another_process_has_named_has_that_name_here_too() {
    let (_, one, other) = two();
    let early = one.ingest(behind(2, Some(1), None)).await.unwrap().unwrap();
    assert_ne!(early.session_id, "run");
    other.ingest(behind(1, None, Some("run"))).await.unwrap().unwrap();
    let later = one.ingest(behind(3, Some(2), None)).await.unwrap().unwrap();
    assert_eq!(later.session_id, "run");
}

#[tokio::test]
async fn a_session_that_another_process_has_made_part_of_another_is_so_here_too() {
    let (_, one, other) = two();
    other.ingest(behind(0, None, Some("run"))).await.unwrap().unwrap();
    let early = one.ingest(behind(2, Some(1), None)).await.unwrap().unwrap();
    assert_ne!(early.session_id, "run");
    other.ingest(behind(1, Some(0), None)).await.unwrap().unwrap();
    let later = one.ingest(behind(3, Some(2), None)).await.unwrap().unwrap();
    assert_eq!(later.session_id, "run");
    let known = other.ingest(behind(4, Some(3), None)).await.unwrap().unwrap();
    assert_eq!(known.session_id, "run");
}

#[tokio::test]
async fn a_session_that_another_process_has_forgotten_begins_anew() {
    let options = Options::url(server().new_database());
    let one = Observatory::open(options.clone()).unwrap();
    one.ingest(log(1, "run")).await.unwrap().unwrap();
    let mut forgetful = options;
    forgetful.max_age = Duration::ZERO;
    let hasty = Observatory::open(forgetful).unwrap();
    let started = Instant::now();
    while found(&one, "/sessions/run").await.0 != 404 {
        assert!(started.elapsed() < Duration::from_secs(20));
        hasty.enforce_retention().await.unwrap();
    }
    drop(hasty);
    one.ingest(log(2, "run")).await.unwrap().unwrap();
    let (status, session) = found(&one, "/sessions/run").await;
    assert_eq!((status, &session["steps"]), (200, &json!(1)));
}

async fn found(observatory: &Observatory, path: &str) -> (u16, Value) {
    use http_body_util::BodyExt;
    let body = http_body_util::Full::new(bytes::Bytes::new());
    let request = hyper::Request::get(format!("/api/v1{path}")).body(body).unwrap();
    let reply = observatory.handle(request, &Caller::local()).await;
    let status = reply.status().as_u16();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn an_order_is_told_to_the_gateways_of_all_processes_and_handed_out_once() {
    let (_, one, other) = two();
    one.ingest(log(1, "run")).await.unwrap().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let for_observer = Arc::clone(&told);
    other.on_order(Arc::new(move |given| {
        for_observer.lock().unwrap().push((given.session_id.clone(), given.order.name()));
    }));
    one.order("t", "run", "ann", Order::Pause { reason: "look".to_owned() }).await.unwrap().unwrap();
    until("the pause was not told", || *told.lock().unwrap() == [("run".to_owned(), "pause")]);
    let paused = other.ingest(log(2, "run")).await.unwrap().unwrap();
    assert_eq!(paused.control["interrupt_signal"], "pause");
    other.order("t", "run", "ben", Order::Resume).await.unwrap().unwrap();
    one.order("t", "run", "ann", Order::Inject { message: "try b".to_owned() }).await.unwrap().unwrap();
    let first = other.ingest(log(3, "run")).await.unwrap().unwrap();
    let second = one.ingest(log(4, "run")).await.unwrap().unwrap();
    assert_eq!(first.control["message"], "try b");
    assert_eq!(second.control["interrupt_signal"], json!(null));
}

#[tokio::test]
async fn deeds_of_all_processes_are_one_chain() {
    let (options, one, other) = two();
    one.ingest(log(1, "run")).await.unwrap().unwrap();
    let deeds = |process: &Arc<Observatory>, operator: &'static str| {
        let process = Arc::clone(process);
        tokio::spawn(async move {
            for number in 0..20 {
                let order = Order::Inject { message: format!("{operator} {number}") };
                process.order("t", "run", operator, order).await.unwrap().unwrap();
            }
        })
    };
    let (a, b) = (deeds(&one, "ann"), deeds(&other, "ben"));
    a.await.unwrap();
    b.await.unwrap();
    assert_eq!(one.verify_audit().await.unwrap(), AuditCheck::Intact { entries: 40 });
    assert_eq!(verify_audit(&options).unwrap(), AuditCheck::Intact { entries: 40 });
}

#[tokio::test]
async fn thresholds_and_policies_reach_every_process() {
    let (options, one, other) = two();
    let (first, second) = (Ladders::shared(), Ladders::shared());
    one.govern(first);
    other.govern(Arc::clone(&second) as _);
    one.configure("ann", Some(json!({ "entropy": { "loop_below": 0.4 } }))).await.unwrap().unwrap();
    until("the threshold did not come", || (other.detectors().entropy.loop_below - 0.4).abs() < 1e-9);
    put(&one, "default", &json!({ "ladder": ["reject"] })).await;
    let spec = json!({ "ladder": ["reject"] });
    until("the policy did not come", || second.overrides() == [("default".to_owned(), spec.clone())]);
    let body = http_body_util::Full::<bytes::Bytes>::from(r#"{"reason":"runaway"}"#);
    let request = hyper::Request::put("/api/v1/kill-switches/acme").body(body).unwrap();
    assert_eq!(one.handle(request, &Caller::local()).await.status(), 200);
    until("the kill switch did not come", || second.switches().len() == 1);
    let third = Ladders::shared();
    Observatory::open(options).unwrap().govern(Arc::clone(&third) as _);
    let known = (third.overrides().len(), third.switches().len());
    assert_eq!(known, (1, 1), "a process that starts later has both");
}

#[test]
fn the_audit_log_cannot_be_changed_in_the_database() {
    let options_url = server().new_database();
    drop(Observatory::open(Options::url(&options_url)).unwrap());
    let name = options_url.split(['/', '?']).find(|part| part.starts_with("test_")).unwrap();
    let mut client = server().client(name).unwrap();
    for sql in ["UPDATE audit SET operator = 'eve'", "DELETE FROM audit", "TRUNCATE audit"] {
        assert!(client.batch_execute(sql).is_err(), "{sql}");
    }
}

#[tokio::test]
async fn the_same_log_sent_to_two_processes_is_kept_once() {
    let (_, one, other) = two();
    let mut kept = BTreeSet::new();
    for number in 0..20 {
        let (a, b) = tokio::join!(one.ingest(log(number, "run")), other.ingest(log(number, "run")));
        let duplicates = [a, b].map(|answer| answer.unwrap().unwrap().duplicate);
        assert_eq!(duplicates.iter().filter(|duplicate| **duplicate).count(), 1, "{number}");
        kept.insert(number);
    }
    assert_eq!(kept.len(), 20);
}
