//! Spans on their way to a real server.

mod collector;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::body::tests::protobuf_as_json;
use super::span::tests::full_record;
use super::{SpanSettings, Spans};
use crate::log::Log;
use crate::{Check, Metrics, Part, Record, SpanResult, TraceContext};
use collector::{Collector, Reply};

const PATIENCE: Duration = Duration::from_secs(30);
const OWN: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// A port that is set aside for a service nobody runs.
const NOBODY: &str = "http://127.0.0.1:1";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

fn start(variables: &[(&str, &str)]) -> (Spans, Arc<Metrics>) {
    let (settings, problems) = SpanSettings::read(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    });
    assert_eq!(problems, []);
    let metrics = Arc::new(Metrics::default());
    let log = Log::off(Arc::clone(&metrics));
    (Spans::start(settings.unwrap(), &log, &metrics), metrics)
}

fn spans_in(body: &Json) -> &Vec<Json> {
    body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap()
}

fn is_degraded(metrics: &Metrics) -> bool {
    metrics.degraded().any(|part| part == Part::Otlp)
}

#[test]
fn spans_arrive_as_json() {
    let collector = Collector::start([]);
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue,authorization=Bearer%20t");
    let (spans, metrics) = start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()),
        (PROTOCOL, "http/json"),
        ("OTEL_SERVICE_NAME", "gateway"),
        headers,
    ]);
    spans.request(&Arc::new(full_record()));
    spans.request(&Arc::new(Record { model: Some("other".into()), ids: None, ..full_record() }));
    assert!(spans.flush(PATIENCE));

    let request = collector.next();
    assert_eq!((&*request.method, &*request.path), ("POST", "/v1/traces"));
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["x-team"], "blue");
    assert_eq!(request.headers["authorization"], "Bearer t");
    let body: Json = serde_json::from_slice(&request.body).unwrap();
    let service = json!({"key": "service.name", "value": {"stringValue": "gateway"}});
    assert!(body["resourceSpans"][0]["resource"]["attributes"].as_array().unwrap().contains(&service));
    let [first, second] = &spans_in(&body)[..] else { panic!("two requests are two spans") };
    assert_eq!((&first["name"], &second["name"]), (&json!("chat gpt-4o"), &json!("chat other")));
    assert_eq!(first["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(first["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(second["parentSpanId"], "");
    assert_ne!(second["traceId"], first["traceId"]);
    assert_ne!(second["spanId"], first["spanId"]);
    assert_eq!(metrics.spans(SpanResult::Exported), 2);
    assert!(!is_degraded(&metrics));
}

/// A check at this place of a trace.
fn check(context: TraceContext) -> Check {
    let (at, took) = (full_record().at, Duration::from_millis(7));
    Check { context, at, took, result: "embedded", reason: None, similarity: Some(0.97) }
}

#[test]
fn a_check_is_a_span_below_its_request() {
    let collector = Collector::start([]);
    let (spans, metrics) = start(&[(OWN, &collector.url()), (PROTOCOL, "http/json")]);
    let context = spans.check_context(None).unwrap();
    spans.request(&Arc::new(Record { ids: None, check: Some(check(context)), ..full_record() }));
    assert!(spans.flush(PATIENCE));
    let body: Json = serde_json::from_slice(&collector.next().body).unwrap();
    let [request, check] = &spans_in(&body)[..] else { panic!("a request and its check are two spans") };
    assert_eq!(check["name"], "check_loop");
    assert_eq!((&check["traceId"], &check["parentSpanId"]), (&request["traceId"], &request["spanId"]));
    assert_eq!((&request["kind"], &check["kind"]), (&json!(3), &json!(1)));
    let result = json!({"key": "loopbreaker.check.result", "value": {"stringValue": "embedded"}});
    assert!(check["attributes"].as_array().unwrap().contains(&result));
    assert_eq!(metrics.spans(SpanResult::Exported), 2);
}

#[test]
fn a_check_for_another_process_belongs_below_the_span_that_asked_for_it() {
    let collector = Collector::start([]);
    let (spans, _) = start(&[(OWN, &collector.url()), (PROTOCOL, "http/json")]);
    let caller = full_record().ids.unwrap();
    let context = spans.check_context(Some(&caller)).unwrap();
    spans.served_check(check(context), Some(&caller));
    let unsampled = TraceContext { sampled: false, ..caller };
    let context = spans.check_context(Some(&unsampled)).unwrap();
    spans.served_check(check(context), Some(&unsampled));
    assert!(spans.flush(PATIENCE));
    let body: Json = serde_json::from_slice(&collector.next().body).unwrap();
    let [served] = &spans_in(&body)[..] else { panic!("who keeps no trace is told nothing of") };
    assert_eq!(served["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((&served["parentSpanId"], &served["kind"]), (&json!("b7ad6b7169203331"), &json!(2)));
    assert!(Spans::off().check_context(Some(&caller)).is_none());
}

#[test]
fn spans_arrive_as_protobuf_by_default() {
    let collector = Collector::start([]);
    let (spans, _) = start(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())]);
    spans.request(&Arc::new(full_record()));
    assert!(spans.flush(PATIENCE));
    let request = collector.next();
    assert_eq!(request.headers["content-type"], "application/x-protobuf");
    let body = protobuf_as_json(&request.body);
    assert_eq!(spans_in(&body)[0]["name"], "chat gpt-4o");
}

#[test]
fn spans_arrive_compressed_when_asked_for() {
    let collector = Collector::start([]);
    let gzip = ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    let (spans, _) = start(&[(OWN, &collector.url()), gzip]);
    spans.request(&Arc::new(full_record()));
    assert!(spans.flush(PATIENCE));
    let request = collector.next();
    assert_eq!(request.headers["content-encoding"], "gzip");
    assert_eq!(spans_in(&protobuf_as_json(&collector::unzip(&request.body))).len(), 1);
}

#[test]
fn spans_arrive_by_grpc() {
    for (gzip, flag) in [("none", 0), ("gzip", 1)] {
        let collector = Collector::start([Reply::Grpc("0")]);
        let compression = ("OTEL_EXPORTER_OTLP_COMPRESSION", gzip);
        let (spans, metrics) =
            start(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()), (PROTOCOL, "grpc"), compression]);
        spans.request(&Arc::new(full_record()));
        assert!(spans.flush(PATIENCE));
        let request = collector.next();
        assert_eq!(request.path, "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
        assert_eq!(request.headers["content-type"], "application/grpc");
        assert_eq!(request.headers["te"], "trailers");
        let (head, message) = request.body.split_at(5);
        assert_eq!(head[0], flag);
        assert_eq!(head[1..], u32::try_from(message.len()).unwrap().to_be_bytes());
        let message = if flag == 1 { collector::unzip(message) } else { message.to_vec() };
        assert_eq!(spans_in(&protobuf_as_json(&message))[0]["name"], "chat gpt-4o");
        assert_eq!(metrics.spans(SpanResult::Exported), 1);
    }
}

#[test]
fn spans_arrive_over_tls_from_an_authority_that_is_named() {
    let certificate = ("OTEL_EXPORTER_OTLP_CERTIFICATE", collector::AUTHORITY);
    for (protocol, reply) in [("http/protobuf", Reply::Status(200)), ("grpc", Reply::Grpc("0"))] {
        let collector = Collector::start_secure([reply]);
        let (spans, metrics) = start(&[(OWN, &collector.url()), (PROTOCOL, protocol), certificate]);
        spans.request(&Arc::new(full_record()));
        assert!(spans.flush(PATIENCE), "{protocol}");
        assert_eq!(metrics.spans(SpanResult::Exported), 1);
        collector.next();
    }
}

#[test]
fn a_collector_that_nobody_vouches_for_gets_nothing() {
    let collector = Collector::start_secure([]);
    let (spans, metrics) = start(&[(OWN, &collector.url())]);
    spans.request(&Arc::new(full_record()));
    assert!(!spans.flush(PATIENCE));
    assert_eq!(metrics.spans(SpanResult::Failed), 1);
    assert!(is_degraded(&metrics) && collector.has_none());
}

#[test]
fn a_connection_serves_many_batches_and_is_replaced_when_it_ends() {
    let collector = Collector::start([Reply::Status(200), Reply::StatusAndHangUp(200)]);
    let (spans, metrics) = start(&[(OWN, &collector.url())]);
    for _ in 0..3 {
        spans.request(&Arc::new(full_record()));
        assert!(spans.flush(PATIENCE));
    }
    let connections = [(); 3].map(|()| collector.next().connection);
    assert_eq!(connections, [0, 0, 1]);
    assert_eq!(metrics.spans(SpanResult::Exported), 3);
}

#[test]
fn a_batch_that_was_not_taken_is_tried_again() {
    let collector = Collector::start([Reply::Status(503), Reply::Status(200)]);
    let (spans, metrics) = start(&[(OWN, &collector.url()), ("OTEL_BSP_SCHEDULE_DELAY", "1")]);
    spans.request(&Arc::new(full_record()));
    let (first, second) = (collector.next(), collector.next());
    assert_eq!(first.body, second.body, "the same spans with the same ids");
    assert!(spans.flush(PATIENCE));
    assert!(!is_degraded(&metrics), "it recovers by itself");
    assert_eq!((metrics.spans(SpanResult::Exported), metrics.spans(SpanResult::Failed)), (1, 0));
    assert!(metrics.render().contains("loopbreaker_degraded_total{part=\"otlp\"} 1\n"));
}

#[test]
fn a_batch_that_will_never_be_taken_is_given_up_at_once() {
    let collector = Collector::start([Reply::Status(400)]);
    let (spans, metrics) = start(&[(OWN, &collector.url()), ("OTEL_BSP_SCHEDULE_DELAY", "1")]);
    spans.request(&Arc::new(full_record()));
    collector.next();
    assert!(!spans.flush(PATIENCE));
    assert_eq!(metrics.spans(SpanResult::Failed), 1);
    assert!(is_degraded(&metrics) && collector.has_none());
    spans.request(&Arc::new(full_record()));
    assert!(spans.flush(PATIENCE), "the next batch is another matter");
    assert!(!is_degraded(&metrics));
}

#[test]
fn spans_that_the_collector_left_out_are_counted() {
    let collector = Collector::start([Reply::LeftOut(1)]);
    let (spans, metrics) = start(&[(OWN, &collector.url()), (PROTOCOL, "http/json")]);
    spans.request(&Arc::new(full_record()));
    spans.request(&Arc::new(full_record()));
    assert!(spans.flush(PATIENCE));
    assert_eq!((metrics.spans(SpanResult::Exported), metrics.spans(SpanResult::Failed)), (1, 1));
}

#[test]
fn a_dead_collector_costs_spans_but_no_time() {
    let queue = ("OTEL_BSP_MAX_QUEUE_SIZE", "8");
    let (spans, metrics) = start(&[(OWN, NOBODY), queue, ("OTEL_BSP_SCHEDULE_DELAY", "1")]);
    let record = Arc::new(full_record());
    let started = Instant::now();
    for _ in 0..10_000 {
        spans.request(&record);
    }
    assert!(started.elapsed() < PATIENCE, "a request waited");
    assert!(metrics.spans(SpanResult::Dropped) > 1_000);
    assert!(!spans.flush(PATIENCE), "nothing could be delivered");
    assert!(is_degraded(&metrics));
    let ended = metrics.spans(SpanResult::Dropped) + metrics.spans(SpanResult::Failed);
    assert_eq!(ended, 10_000, "every span is accounted for");
}

#[test]
fn a_collector_that_does_not_answer_is_given_up_in_time() {
    let collector = Collector::start([Reply::Silence]);
    let (spans, metrics) = start(&[(OWN, &collector.url()), ("OTEL_EXPORTER_OTLP_TIMEOUT", "50")]);
    spans.request(&Arc::new(full_record()));
    assert!(!spans.flush(PATIENCE));
    assert_eq!(metrics.spans(SpanResult::Failed), 1);
}

#[test]
fn who_waits_for_the_end_waits_no_longer_than_he_said() {
    let collector = Collector::start([Reply::Silence]);
    let (spans, _) = start(&[(OWN, &collector.url())]);
    spans.request(&Arc::new(full_record()));
    let started = Instant::now();
    assert!(!spans.flush(Duration::from_millis(50)));
    assert!(started.elapsed() < Duration::from_secs(5), "the collector has ten seconds, we have not");
}

#[test]
fn a_trace_that_the_caller_does_not_keep_is_not_sent() {
    let collector = Collector::start([]);
    let (spans, metrics) = start(&[(OWN, &collector.url())]);
    let mut record = full_record();
    record.ids.as_mut().unwrap().sampled = false;
    spans.request(&Arc::new(record));
    spans.request(&Arc::new(full_record()));
    assert!(spans.flush(PATIENCE));
    assert_eq!(metrics.spans(SpanResult::Exported), 1);
    assert_eq!(spans_in(&protobuf_as_json(&collector.next().body)).len(), 1);
}
