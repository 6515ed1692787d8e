use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopbreaker::{Action, DetectorName, Kind, Severity};
use serde_json::{Value, json};

use super::{Level, Log, LogFormat};
use crate::{Degraded, Dialect, FindingNote, Metrics, Mode, Part, Record, TenantClass, Tokens, TraceContext};

const PATIENCE: Duration = Duration::from_secs(20);

/// Keeps what is written, and fails while it is told to.
#[derive(Clone, Default)]
struct Sink {
    written: Arc<Mutex<Vec<u8>>>,
    failure: Arc<Mutex<Option<io::ErrorKind>>>,
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn fail(&self, kind: Option<io::ErrorKind>) {
        *self.failure.lock().unwrap() = kind;
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(kind) = *self.failure.lock().unwrap() {
            return Err(kind.into());
        }
        // Half a line at a time, as a pipe may take it.
        let taken = bytes.len().min(100);
        self.written.lock().unwrap().extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log(format: LogFormat) -> (Log, Sink, Arc<Metrics>) {
    let (sink, metrics) = (Sink::default(), Arc::new(Metrics::default()));
    (Log::start(format, Box::new(sink.clone()), Arc::clone(&metrics)), sink, metrics)
}

fn record() -> Record {
    Record {
        at: std::time::UNIX_EPOCH + Duration::from_millis(1_793_923_199_250),
        tenant: "acme".into(),
        tenant_class: TenantClass::Named,
        agent: "claude-cli".into(),
        session: "run-17".into(),
        dialect: Dialect::Chat,
        path: "/v1/chat/completions".into(),
        model: Some("gpt-4o".into()),
        response_model: Some("gpt-4o-2024-11-20".into()),
        upstream: "api.openai.com".into(),
        verdict: Action::Hint,
        findings: vec![FindingNote {
            kind: Kind::Cycle,
            severity: Severity::Loop,
            mode: Mode::Enforce,
            detector: DetectorName::Redundancy,
            count: 6,
            period: 2,
            policy: "agents".into(),
        }],
        tokens: Some(Tokens { input: 1_000, cache_read: 200, cache_write: 30, output: 50, reasoning: 6 }),
        cost_micros: 12_340,
        stream: true,
        overhead: Duration::from_micros(85),
        duration: Duration::from_millis(1_240),
        first_chunk: Some(Duration::from_millis(310)),
        ids: TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ..Record::default()
    }
}

#[test]
fn a_request_is_one_json_object_with_all_that_is_known_of_it() {
    let (log, sink, _) = log(LogFormat::Json);
    log.request(&Arc::new(record()));
    assert!(log.flush(PATIENCE));
    assert_eq!(
        sink.lines(),
        [json!({
            "at": "2026-11-05T23:59:59.250Z",
            "level": "info",
            "event": "request",
            "tenant": "acme",
            "agent": "claude-cli",
            "session": "run-17",
            "dialect": "chat",
            "method": "POST",
            "path": "/v1/chat/completions",
            "model": "gpt-4o",
            "response_model": "gpt-4o-2024-11-20",
            "upstream": "api.openai.com",
            "status": 200,
            "verdict": "hint",
            "findings": [{
                "kind": "cycle", "severity": "loop", "mode": "enforce", "detector": "redundancy",
                "count": 6, "period": 2, "policy": "agents",
            }],
            "tokens": {"input": 1000, "cache_read": 200, "cache_write": 30, "output": 50, "reasoning": 6},
            "cost_usd": 0.01234,
            "stream": true,
            "overhead_us": 85,
            "duration_ms": 1240,
            "first_chunk_ms": 310,
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
        })]
    );
}

#[test]
fn what_went_wrong_stands_in_the_line() {
    let (log, sink, _) = log(LogFormat::Json);
    log.request(&Arc::new(Record {
        status: 429,
        verdict: Action::Reject,
        refusal: Some("loop_detected"),
        degraded: [Part::Hint, Part::State].into_iter().collect(),
        tokens: Some(Tokens::default()),
        tokens_estimated: true,
        cost_known: false,
        held: Duration::from_millis(500),
        ..Record::default()
    }));
    assert!(log.flush(PATIENCE));
    let line = &sink.lines()[0];
    assert_eq!(line["level"], "warn");
    assert_eq!(line["degraded"], json!(["hint", "state"]));
    assert_eq!(line["refusal"], "loop_detected");
    assert_eq!(line["held_ms"], 500);
    assert_eq!((&line["tokens_estimated"], &line["price_unknown"]), (&json!(true), &json!(true)));
}

#[test]
fn an_answer_that_was_cut_is_not_called_allowed() {
    let cut = || Arc::new(Record { is_cut: true, ..Record::default() });
    let (log_for_eyes, seen, _) = log(LogFormat::Human { colour: false });
    log_for_eyes.request(&cut());
    assert!(log_for_eyes.flush(PATIENCE));
    assert!(seen.text().contains(" cut      200 "), "{}", seen.text());
    let (log_for_machines, seen, _) = log(LogFormat::Json);
    log_for_machines.request(&cut());
    assert!(log_for_machines.flush(PATIENCE));
    let line = &seen.lines()[0];
    assert_eq!(
        (&line["verdict"], &line["cut"]),
        (&json!("allow"), &json!(true)),
        "the request was let through"
    );
}

#[test]
fn a_human_line_says_first_what_was_decided() {
    let (log, sink, _) = log(LogFormat::Human { colour: false });
    log.request(&Arc::new(record()));
    log.request(&Arc::new(Record {
        degraded: Degraded::from(Part::Body),
        method: "GET".into(),
        path: "/v1/models?key=secret".into(),
        ..Record { ids: None, ..Record::default() }
    }));
    log.event(Level::Error, "config refused", &[("file", "my policies.yaml"), ("line", "3")]);
    assert!(log.flush(PATIENCE));
    let text = sink.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "2026-11-05T23:59:59.250Z hint     200 chat gpt-4o session=run-17 tenant=acme agent=claude-cli \
         loop=cycle/2x6 tokens=1230+56 cost=$0.01234 own=85us total=1.2s"
    );
    assert_eq!(
        lines[1],
        "1970-01-01T00:00:00.000Z allow    200 other GET /v1/models session=\"\" tenant=\"\" agent=\"\" \
         own=0us total=0us degraded=body"
    );
    assert!(lines[2].ends_with(" error    config refused file=\"my policies.yaml\" line=3"), "{}", lines[2]);
}

#[test]
fn colours_are_written_only_when_asked_for() {
    for colour in [false, true] {
        let (log, sink, _) = log(LogFormat::Human { colour });
        log.request(&Arc::new(record()));
        log.event(Level::Info, "listening", &[]);
        assert!(log.flush(PATIENCE));
        assert_eq!(sink.text().matches('\x1b').count(), if colour { 4 } else { 0 });
    }
}

#[test]
fn no_field_can_forge_a_line_or_show_a_credential() {
    let hostile = "a\n{\"level\":\"error\"}\r\x1b[2J sk-proj-abcdef0123456789 Bearer abcdefghijklmnop";
    for format in [LogFormat::Json, LogFormat::Human { colour: false }] {
        let (log, sink, _) = log(format);
        log.request(&Arc::new(Record {
            tenant: hostile.into(),
            agent: hostile.into(),
            session: hostile.into(),
            method: hostile.to_owned().into(),
            path: hostile.into(),
            response_model: Some(hostile.into()),
            upstream: hostile.into(),
            findings: vec![FindingNote { policy: hostile.into(), ..record().findings[0].clone() }],
            ..Record::default()
        }));
        log.request(&Arc::new(Record { model: Some(hostile.into()), ..Record::default() }));
        log.event(Level::Info, "x", &[("value", hostile)]);
        assert!(log.flush(PATIENCE));
        let text = sink.text();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.trim_end().contains(|character: char| character.is_control() && character != '\n'));
        assert!(!text.contains("abcdef0123") && !text.contains("abcdefghijkl"), "{text}");
    }
}

#[test]
fn an_event_has_its_fields_beside_it() {
    let (log, sink, _) = log(LogFormat::Json);
    log.event(Level::Warn, "config reloaded", &[("policies", "3"), ("file", &"x".repeat(5_000))]);
    assert!(log.flush(PATIENCE));
    let line = &sink.lines()[0];
    assert_eq!(
        (&line["event"], &line["level"], &line["policies"]),
        (&json!("config reloaded"), &json!("warn"), &json!("3"))
    );
    assert!(line["file"].as_str().unwrap().len() < 1_100, "fields are bounded");
}

#[test]
fn a_log_that_is_off_has_nothing_to_flush() {
    let (log, sink, metrics) = log(LogFormat::Off);
    log.event(Level::Info, "listening", &[]);
    log.request(&Arc::new(record()));
    assert!(log.flush(Duration::ZERO));
    assert_eq!((sink.text().len(), metrics.lines_dropped()), (0, 0));
}

/// Stands still at the first write until it is told to go on.
struct Stuck {
    arrived: SyncSender<()>,
    go_on: Receiver<()>,
    sink: Sink,
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.arrived.try_send(()).unwrap_or_default();
        // Once the other end is gone, there is nothing left to wait for.
        self.go_on.recv().unwrap_or_default();
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stuck_reader_costs_lines_but_no_time() {
    let ((arrived, has_arrived), (go, go_on)) = (sync_channel(1), sync_channel(0));
    let (sink, metrics) = (Sink::default(), Arc::new(Metrics::default()));
    let out = Stuck { arrived, go_on, sink: sink.clone() };
    let log = Log::start(LogFormat::Json, Box::new(out), Arc::clone(&metrics));
    log.event(Level::Info, "first", &[]);
    has_arrived.recv_timeout(PATIENCE).unwrap();

    let record = Arc::new(record());
    let started = Instant::now();
    for _ in 0..Log::CAPACITY + 1_000 {
        log.request(&record);
    }
    assert!(started.elapsed() < PATIENCE, "a request waited");
    assert_eq!(metrics.lines_dropped(), 1_000);
    assert!(!log.flush(Duration::from_millis(20)), "nothing can be written yet");

    drop(go);
    assert!(log.flush(PATIENCE));
    assert_eq!(sink.text().lines().count(), 1 + Log::CAPACITY);
}

#[test]
fn lines_wait_for_a_full_disk_and_are_written_whole_afterwards() {
    let (log, sink, metrics) = log(LogFormat::Json);
    sink.fail(Some(io::ErrorKind::StorageFull));
    log.request(&Arc::new(record()));
    assert!(!log.flush(PATIENCE), "it could not be written");
    assert_eq!(metrics.degraded().collect::<Vec<_>>(), [Part::Log]);
    sink.fail(None);
    log.event(Level::Info, "second", &[]);
    assert!(log.flush(PATIENCE));
    assert_eq!(
        sink.lines().iter().map(|line| line["event"].as_str().unwrap()).collect::<Vec<_>>(),
        ["request", "second"]
    );
    assert_eq!((metrics.degraded().count(), metrics.lines_dropped()), (0, 0));
}

#[test]
fn a_closed_pipe_costs_lines_and_nothing_else() {
    let (log, sink, metrics) = log(LogFormat::Json);
    sink.fail(Some(io::ErrorKind::BrokenPipe));
    let record = Arc::new(record());
    // More than what is kept for later.
    for _ in 0..6 {
        (0..1_000).for_each(|_| log.request(&record));
        assert!(!log.flush(PATIENCE));
    }
    assert!(metrics.lines_dropped() > 1_000, "{}", metrics.lines_dropped());
    sink.fail(None);
    assert!(log.flush(PATIENCE), "it works again by itself");
    assert_eq!(sink.lines().len() as u64 + metrics.lines_dropped(), 6_000);
}

#[test]
fn lines_that_nobody_took_are_counted_at_the_end() {
    let (log, sink, metrics) = log(LogFormat::Json);
    sink.fail(Some(io::ErrorKind::BrokenPipe));
    log.event(Level::Info, "one", &[]);
    log.event(Level::Info, "two", &[]);
    assert!(!log.flush(PATIENCE));
    drop(log);
    let deadline = Instant::now() + PATIENCE;
    while metrics.lines_dropped() < 2 && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(metrics.lines_dropped(), 2);
}

#[test]
fn formats_are_known_by_their_names() {
    assert_eq!(LogFormat::parse("json", true), Some(LogFormat::Json));
    assert_eq!(LogFormat::parse("human", true), Some(LogFormat::Human { colour: true }));
    assert_eq!(LogFormat::parse("off", true), Some(LogFormat::Off));
    assert_eq!(LogFormat::parse("xml", true), None);
    assert_eq!(LogFormat::usual(true, true), LogFormat::Human { colour: true });
    assert_eq!(LogFormat::usual(false, false), LogFormat::Json);
}
