use std::time::Duration;

use proptest::prelude::*;

use super::{Protocol, SettingProblem, SpanSettings, percent_decoded};
use crate::spans::sampler::Sampler;

fn read(variables: &[(&str, &str)]) -> (Option<SpanSettings>, Vec<SettingProblem>) {
    SpanSettings::read(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

/// Settings that nothing is wrong with.
#[track_caller]
fn good(variables: &[(&str, &str)]) -> SpanSettings {
    let (settings, problems) = read(variables);
    assert_eq!(problems, []);
    settings.unwrap()
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

#[test]
fn without_a_collector_there_are_no_spans() {
    for variables in [
        &[][..],
        &[("OTEL_SERVICE_NAME", "x")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
        &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
        &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
    ] {
        let (settings, problems) = read(variables);
        assert!(settings.is_none() && problems.is_empty(), "{variables:?}");
    }
}

#[test]
fn the_address_for_everything_gets_the_path_of_traces() {
    let endpoint = |value| good(&[("OTEL_EXPORTER_OTLP_ENDPOINT", value)]).endpoint();
    assert_eq!(endpoint("http://collector:4318"), "http://collector:4318/v1/traces");
    assert_eq!(endpoint("https://eu.example.com/otlp/"), "https://eu.example.com/otlp/v1/traces");
    assert_eq!(endpoint("http://[::1]:4318"), "http://[::1]:4318/v1/traces");
}

#[test]
fn the_address_for_traces_is_taken_as_it_stands_and_wins() {
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example.com/in");
    assert_eq!(good(&[ENDPOINT, own]).endpoint(), "https://traces.example.com/in");
}

#[test]
fn asking_for_the_exporter_by_name_is_enough() {
    let asked = ("OTEL_TRACES_EXPORTER", "otlp");
    assert_eq!(good(&[asked]).endpoint(), "http://localhost:4318/v1/traces");
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_eq!(good(&[asked, grpc]).endpoint(), "http://localhost:4317/");
}

#[test]
fn every_protocol_is_known_by_its_name() {
    let protocol = |value| good(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", value)]).protocol;
    assert_eq!(protocol("http/protobuf"), Protocol::HttpProtobuf);
    assert_eq!(protocol("http/json"), Protocol::HttpJson);
    assert_eq!(protocol("grpc"), Protocol::Grpc);
    assert_eq!(good(&[ENDPOINT]).protocol(), "http/protobuf");
    let own = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json");
    assert_eq!(good(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), own]).protocol(), "http/json");
}

#[test]
fn an_address_of_grpc_may_leave_out_the_scheme() {
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let bare = ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
    assert_eq!(good(&[grpc, bare]).endpoint(), "https://collector:4317/");
    let insecure = ("OTEL_EXPORTER_OTLP_INSECURE", "true");
    assert_eq!(good(&[grpc, bare, insecure]).endpoint(), "http://collector:4317/");
}

#[test]
fn an_address_that_cannot_be_used_keeps_spans_off_and_says_so() {
    for value in
        ["collector:4318", "ftp://collector", "http://user:secret@collector", "not an address", "http://"]
    {
        let (settings, problems) = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", value)]);
        assert!(settings.is_none(), "{value}");
        assert_eq!(problems, [SettingProblem::Endpoint { variable: "OTEL_EXPORTER_OTLP_ENDPOINT" }]);
        assert!(!problems[0].to_string().contains("secret"));
    }
}

#[test]
fn headers_are_decoded_and_never_shown() {
    let settings =
        good(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20a%3Db, x-team=7,")]);
    assert_eq!(settings.headers["authorization"], "Bearer a=b");
    assert_eq!(settings.headers["x-team"], "7");
    assert!(!format!("{settings:?}").contains("Bearer"));
}

#[test]
fn an_entry_that_is_no_pair_is_left_out_without_being_repeated() {
    let (settings, problems) =
        read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,secret,b=%zz,=c,d\u{e4}=1,e=2")]);
    assert_eq!(settings.unwrap().headers.len(), 2);
    let entry = |entry| SettingProblem::Pair { variable: "OTEL_EXPORTER_OTLP_HEADERS", entry };
    assert_eq!(problems, [2, 3, 4, 5].map(entry));
    assert!(!problems[0].to_string().contains("secret"));
}

#[test]
fn the_service_has_a_name_and_attributes() {
    let name = |variables: &[(&str, &str)]| {
        let mut all = vec![ENDPOINT];
        all.extend(variables);
        let resource = good(&all).resource;
        let names: Vec<_> = resource.iter().filter(|(name, _)| name == "service.name").collect();
        assert_eq!(names.len(), 1);
        names[0].1.clone()
    };
    assert_eq!(name(&[]), "loopbreaker");
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a%20b,deployment.environment=prod");
    assert_eq!(name(&[attributes]), "a b");
    assert_eq!(name(&[attributes, ("OTEL_SERVICE_NAME", "gateway")]), "gateway");
    let resource = good(&[ENDPOINT, attributes]).resource;
    assert!(resource.contains(&("deployment.environment".to_owned(), "prod".to_owned())));
    assert!(resource.contains(&("telemetry.sdk.language".to_owned(), "rust".to_owned())));
}

#[test]
fn samplers_are_known_by_their_names() {
    let sampler = |name, argument| {
        good(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", argument)]).sampler
    };
    assert_eq!(sampler("always_off", ""), Sampler::parse("always_off", 1.0).unwrap());
    assert_eq!(sampler("traceidratio", "0.25"), Sampler::parse("traceidratio", 0.25).unwrap());
    assert_eq!(good(&[ENDPOINT]).sampler, Sampler::default());
}

#[test]
fn a_value_that_is_wrong_is_told_and_the_usual_one_used() {
    let (settings, problems) = read(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/xml"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "client.pem"),
    ]);
    let settings = settings.unwrap();
    assert_eq!((settings.protocol, settings.gzip), (Protocol::HttpProtobuf, false));
    assert_eq!((settings.timeout, settings.max_queue), (Duration::from_secs(10), 2_048));
    assert_eq!(settings.sampler, Sampler::default());
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'http/xml', which is not known here: use http/protobuf, http/json or grpc",
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE has no effect here: use a header with a token, or a collector on \
             this machine",
            "OTEL_BSP_MAX_QUEUE_SIZE is '0': use a number from 1 to 65536",
            "OTEL_EXPORTER_OTLP_TIMEOUT is 'soon': use a number from 1 to 60000",
            "OTEL_EXPORTER_OTLP_COMPRESSION is 'zip', which is not known here: use gzip or none",
            "OTEL_TRACES_SAMPLER is 'jaeger_remote', which is not known here: use always_on, always_off, \
             traceidratio, or one of these with parentbased_ before it",
        ]
    );
}

#[test]
fn a_ratio_that_is_none_keeps_every_trace_and_is_told() {
    let ratio = ("OTEL_TRACES_SAMPLER_ARG", "50%");
    let (settings, problems) = read(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", "traceidratio"), ratio]);
    assert_eq!(settings.unwrap().sampler, Sampler::parse("traceidratio", 1.0).unwrap());
    assert_eq!(problems[0].to_string(), "OTEL_TRACES_SAMPLER_ARG is '50%': use a number from 0 to 1");
}

#[test]
fn another_exporter_keeps_spans_off_and_is_told() {
    let (settings, problems) = read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "console")]);
    assert!(settings.is_none());
    assert_eq!(problems.len(), 1);
}

#[test]
fn batches_are_never_larger_than_the_queue() {
    let settings = good(&[ENDPOINT, ("OTEL_BSP_MAX_QUEUE_SIZE", "10"), ("OTEL_BSP_SCHEDULE_DELAY", "50")]);
    assert_eq!((settings.max_queue, settings.max_batch), (10, 10));
    assert_eq!(settings.delay, Duration::from_millis(50));
}

#[test]
fn the_newest_names_can_be_asked_for() {
    let opt_in = ("OTEL_SEMCONV_STABILITY_OPT_IN", "http, gen_ai_latest_experimental");
    assert!(good(&[ENDPOINT, opt_in]).newest_names && !good(&[ENDPOINT]).newest_names);
}

proptest! {
    #[test]
    fn any_values_are_read_without_harm(values in proptest::collection::vec(".{0,40}", 8)) {
        let names = [
            "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
            "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_SERVICE_NAME",
        ];
        let variables: Vec<_> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
        read(&variables);
        let mut with_endpoint = variables;
        with_endpoint[0] = ENDPOINT;
        prop_assert!(read(&with_endpoint).0.is_some(), "a wrong value never keeps spans off");
    }

    #[test]
    fn what_is_percent_encoded_is_decoded(text in ".{0,20}") {
        let encoded: String = text.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).map(char::from).collect();
        prop_assert_eq!(percent_decoded(&encoded), Some(text));
    }
}
