use std::time::{Duration, UNIX_EPOCH};

use loopbreaker::{Action, DetectorName, Kind, Severity};

use super::{Span, Value, host_and_port};
use crate::{Degraded, Dialect, FindingNote, Mode, Part, Record, TenantClass, Tokens, TraceContext};

/// A request of which everything is known.
pub(in crate::spans) fn full_record() -> Record {
    let note = |kind| FindingNote {
        kind,
        severity: Severity::Loop,
        mode: Mode::Enforce,
        detector: DetectorName::Redundancy,
        count: 6,
        period: 2,
        policy: "agents".into(),
    };
    Record {
        at: UNIX_EPOCH + Duration::from_nanos(1_793_923_199_250_000_001),
        tenant: "acme".into(),
        tenant_class: TenantClass::Named,
        agent: "claude-cli".into(),
        session: "run-17".into(),
        dialect: Dialect::Chat,
        path: "/v1/chat/completions?key=secret".into(),
        model: Some("gpt-4o".into()),
        response_model: Some("gpt-4o-2024-11-20".into()),
        upstream: "api.openai.com:8443".into(),
        status: 429,
        verdict: Action::Reject,
        findings: vec![note(Kind::Cycle), note(Kind::Repeat), note(Kind::Cycle)],
        tokens: Some(Tokens { input: 1_000, cache_read: 200, cache_write: 30, output: 50, reasoning: 6 }),
        cost_micros: 12_340,
        stream: true,
        overhead: Duration::from_micros(85),
        held: Duration::from_micros(500),
        duration: Duration::from_millis(1_240),
        first_chunk: Some(Duration::from_millis(310)),
        degraded: Degraded::from(Part::State),
        refusal: Some("loop_detected"),
        ids: TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ..Record::default()
    }
}

fn span(record: &Record) -> Span<'_> {
    Span::of(record, [1; 16], [2; 8], false)
}

fn attribute<'s>(span: &'s Span<'_>, name: &str) -> Option<&'s Value<'s>> {
    let mut found = span.attributes.iter().filter(|(known, _)| *known == name);
    let first = found.next().map(|(_, value)| value);
    assert!(found.next().is_none(), "{name} is there twice");
    first
}

#[track_caller]
fn assert_text(span: &Span<'_>, name: &str, text: &str) {
    assert_eq!(attribute(span, name), Some(&Value::Text(text.into())), "{name}");
}

#[track_caller]
fn assert_integer(span: &Span<'_>, name: &str, number: i64) {
    assert_eq!(attribute(span, name), Some(&Value::Integer(number)), "{name}");
}

#[test]
fn a_request_has_the_attributes_of_the_conventions() {
    let record = full_record();
    let span = span(&record);
    assert_text(&span, "gen_ai.operation.name", "chat");
    assert_text(&span, "gen_ai.provider.name", "openai");
    assert_text(&span, "gen_ai.system", "openai");
    assert_text(&span, "gen_ai.request.model", "gpt-4o");
    assert_text(&span, "gen_ai.response.model", "gpt-4o-2024-11-20");
    assert_text(&span, "gen_ai.conversation.id", "run-17");
    assert_text(&span, "session.id", "run-17");
    assert_text(&span, "gen_ai.agent.id", "claude-cli");
    assert_text(&span, "gen_ai.agent.name", "claude-cli");
    assert_text(&span, "user.id", "acme");
    assert_text(&span, "server.address", "api.openai.com");
    assert_integer(&span, "server.port", 8_443);
    assert_integer(&span, "http.response.status_code", 429);
    assert_eq!(attribute(&span, "gen_ai.request.stream"), Some(&Value::Truth(true)));
    assert_eq!(attribute(&span, "gen_ai.response.time_to_first_chunk"), Some(&Value::Number(0.31)));
}

#[test]
fn tokens_include_what_the_conventions_include() {
    let record = full_record();
    let span = span(&record);
    assert_integer(&span, "gen_ai.usage.input_tokens", 1_230);
    assert_integer(&span, "gen_ai.usage.output_tokens", 56);
    assert_integer(&span, "gen_ai.usage.cache_read.input_tokens", 200);
    assert_integer(&span, "gen_ai.usage.cache_creation.input_tokens", 30);
    assert_integer(&span, "gen_ai.usage.reasoning.output_tokens", 6);
}

#[test]
fn what_we_did_has_attributes_of_our_own() {
    let record = full_record();
    let span = span(&record);
    assert_text(&span, "loopbreaker.verdict", "reject");
    assert_eq!(attribute(&span, "loopbreaker.finding.kinds"), Some(&Value::Texts(vec!["cycle", "repeat"])));
    assert_integer(&span, "loopbreaker.overhead_us", 85);
    assert_integer(&span, "loopbreaker.held_us", 500);
    assert_eq!(attribute(&span, "loopbreaker.degraded"), Some(&Value::Texts(vec!["state"])));
    assert_eq!(attribute(&span, "loopbreaker.cost_usd"), Some(&Value::Number(0.012_34)));
}

#[test]
fn a_span_hangs_below_its_caller() {
    let record = full_record();
    let caller = span(&record);
    assert_eq!(caller.parent_id, Some([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]));
    assert_eq!(caller.flags, 0x301);
    let root = Record { ids: None, ..full_record() };
    assert_eq!((span(&root).parent_id, span(&root).flags), (None, 0x101));
}

#[test]
fn a_span_lasts_as_long_as_its_request() {
    let record = full_record();
    let span = span(&record);
    assert_eq!(span.start_nanos, 1_793_923_199_250_000_001);
    assert_eq!(span.end_nanos - span.start_nanos, 1_240_000_000);
}

#[test]
fn a_span_is_named_by_operation_and_model() {
    let named = |dialect, model: Option<&str>| {
        let record =
            Record { dialect, model: model.map(Into::into), method: "GET".into(), ..Record::default() };
        span(&record).name
    };
    assert_eq!(named(Dialect::Anthropic, Some("claude-sonnet-4-5")), "chat claude-sonnet-4-5");
    assert_eq!(named(Dialect::Gemini, Some("gemini-2.5-pro")), "generate_content gemini-2.5-pro");
    assert_eq!(named(Dialect::Responses, None), "chat");
    assert_eq!(named(Dialect::Other, None), "GET");
}

#[test]
fn an_error_is_named_by_our_refusal_or_by_the_status() {
    let error = |status, refusal| {
        let record = Record { status, refusal, ..Record::default() };
        let span = span(&record);
        let kind = attribute(&span, "error.type").map(|value| format!("{value:?}"));
        (span.is_error, kind)
    };
    assert_eq!(error(200, None), (false, None));
    assert_eq!(error(503, None), (true, Some(r#"Text("503")"#.to_owned())));
    assert_eq!(error(429, Some("budget_exceeded")), (true, Some(r#"Text("budget_exceeded")"#.to_owned())));
}

#[test]
fn a_request_that_is_passed_through_claims_no_model_call() {
    let record = Record { upstream: "proxy.internal".into(), ..Record::default() };
    let span = span(&record);
    assert_eq!(attribute(&span, "gen_ai.operation.name"), None);
    assert_eq!(attribute(&span, "gen_ai.provider.name"), None);
    assert_eq!(attribute(&span, "loopbreaker.finding.kinds"), None);
}

#[test]
fn the_newest_names_leave_out_the_old_one() {
    let record = full_record();
    let span = Span::of(&record, [1; 16], [2; 8], true);
    assert_eq!(attribute(&span, "gen_ai.system"), None);
    assert_text(&span, "gen_ai.provider.name", "openai");
}

#[test]
fn no_credential_and_no_query_leaves_in_a_span() {
    let key = "sk-proj-abcdef0123456789";
    let record = Record {
        tenant: key.into(),
        agent: key.into(),
        session: key.into(),
        model: Some(key.into()),
        response_model: Some(key.into()),
        upstream: key.into(),
        method: key.into(),
        ..full_record()
    };
    let told = format!("{:?}", span(&record));
    assert!(!told.contains("abcdef") && !told.contains("secret"), "{told}");
    assert!(told.contains("sk-***"));
}

#[test]
fn absurd_counts_stay_within_what_a_collector_can_read() {
    let tokens = Tokens { input: u64::MAX, output: u64::MAX, ..Tokens::default() };
    let record = Record { tokens: Some(tokens), duration: Duration::MAX, ..full_record() };
    let span = span(&record);
    assert_integer(&span, "gen_ai.usage.input_tokens", i64::MAX);
    assert_eq!(span.end_nanos, u64::MAX);
}

#[test]
fn a_port_is_told_apart_from_its_host() {
    assert_eq!(host_and_port("api.openai.com"), ("api.openai.com", None));
    assert_eq!(host_and_port("127.0.0.1:8000"), ("127.0.0.1", Some(8_000)));
    assert_eq!(host_and_port("[::1]:8000"), ("[::1]", Some(8_000)));
    assert_eq!(host_and_port("::1"), ("::1", None));
    assert_eq!(host_and_port("host:port"), ("host:port", None));
}
