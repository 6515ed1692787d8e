//! What a log costs a server: statements, since each of them may be a way there and back.

use std::fs;

use loopbreaker_observatory::{Arrival, Completion, Observatory, Options, Usage};
use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};

use crate::backend::Server;

const REQUESTS: u32 = 300;
const SESSIONS: u32 = 10;

fn trace(number: u32) -> TraceId {
    TraceId::derived(&[b"cost", &number.to_le_bytes()])
}

/// One request of an agent as a gateway notes it: a call behind the one before, its result, and what it used.
fn note(observatory: &Observatory, number: u32) {
    let session = format!("run-{}", number % SESSIONS);
    let mut call = DecisionLog::builder("a", "coder", "1.0.0")
        .intent(format!("look at file {number}"))
        .called("read", format!("{{\"path\":\"src/{number}.rs\"}}"));
    if let Some(before) = number.checked_sub(SESSIONS) {
        call = call.after(trace(before));
    }
    let log = call.build(trace(number), Moment::from_millis(0)).unwrap();
    let used = Usage {
        tenant: "t".into(),
        session: session.clone(),
        trace_id: Some(trace(number)),
        model: None,
        tokens: 100,
        cost_usd: 0.01,
    };
    let call = Arrival { tenant: "t".into(), session: Some(session.clone()), log };
    assert!(observatory.note((call, used)));
    let (status, output) = (Status::Success, Some(format!("{number} lines")));
    let done = Completion { tenant: "t".into(), session, trace_id: trace(number), status, output };
    assert!(observatory.note(done));
}

#[test]
fn a_request_of_a_gateway_costs_few_statements() {
    /// Two to look it up, five to write it down, and its share of what belongs to a batch.
    const MOST: f64 = 9.0;
    let own = Server::start(&["log_statement=all"]);
    let observatory = Observatory::open(Options::url(own.url("postgres"))).unwrap();
    let statements = || {
        let log = fs::read_to_string(own.folder.path().join("log")).unwrap();
        log.lines().filter(|line| line.contains("LOG:  execute") || line.contains("LOG:  statement")).count()
    };
    let before = statements();
    let started = std::time::Instant::now();
    for number in 0..REQUESTS {
        note(&observatory, number);
    }
    observatory.flush();
    let took = started.elapsed();
    let each = (statements() - before) as f64 / f64::from(REQUESTS);
    assert!(each < MOST, "{each:.1} statements per request, {REQUESTS} requests took {took:?}");
    assert_eq!(observatory.health().unwritten(), 0);
}
