//! Paths, headers and bodies arrive as they were sent.

use crate::lab::{Bench, Lab};
use crate::provider::Provider;
use crate::talk::question;
use crate::wire::{answer, chunk, request};

/// Names in lower case with their values, framing and what is ours left out.
fn end_to_end(headers: &[(String, String)]) -> Vec<(String, String)> {
    let ours = ["host", "content-length", "transfer-encoding", "connection", "date"];
    let lower = headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    lower.filter(|(name, _)| !ours.contains(&name.as_str()) && !name.starts_with("x-loopbreaker-")).collect()
}

fn pairs(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn headers_of_a_request_keep_value_and_order() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let sent = [
        ("x-zebra", "1"),
        ("authorization", "Bearer sk-test"),
        ("accept", "*/*"),
        ("x-odd", "a  b;\"c\\d\",="),
        ("cookie", "one=1"),
        ("cookie", "two=2"),
        ("x-empty", ""),
        ("user-agent", "agent/1.0 (test)"),
        ("accept-encoding", "gzip, br;q=0.5"),
        ("openai-organization", "org-1"),
    ];
    lab.post("/v1/chat/completions", &sent, question("hello"));
    assert_eq!(end_to_end(&provider.seen()[0].head.headers), pairs(&sent));
}

#[test]
fn headers_keep_their_order_beside_a_credential_that_stays_behind() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let kept = [("accept", "*/*"), ("openai-organization", "org-1"), ("user-agent", "agent/1.0")];
    let credentials =
        [("authorization", "Bearer sk-test"), ("x-api-key", "of another"), ("x-goog-api-key", "of a third")];
    lab.post("/v1/chat/completions", &[&credentials[..], &kept[..]].concat(), question("hello"));
    let seen = end_to_end(&provider.seen()[0].head.headers);
    assert_eq!(seen, pairs(&[&credentials[..1], &kept[..]].concat()));
}

#[test]
fn header_values_that_are_no_ascii_keep_their_bytes() {
    let provider = Provider::answering(
        b"HTTP/1.1 200 OK\r\nx-back: \xfc\xe9\xff\r\ncontent-length: 2\r\n\r\n{}".as_slice(),
    );
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-there: \xff\x80\xe9\r\n\r\n");
    let reply = wire.reply();
    assert_eq!(provider.seen()[0].head.get("x-there"), Some("\u{ff}\u{80}\u{e9}"));
    assert_eq!(reply.header("x-back"), Some("\u{fc}\u{e9}\u{ff}"));
}

#[test]
fn headers_of_an_answer_keep_value_and_order() {
    let given = [
        ("x-zebra", "1"),
        ("content-type", "application/json; charset=utf-8"),
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=2"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-request-id", "req_1"),
        ("etag", "W/\"x\""),
    ];
    let provider = Provider::answering(answer("200 OK", &given, b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let reply = lab.chat(&[], question("hello"));
    assert_eq!(end_to_end(&reply.head.headers), pairs(&given));
    assert_eq!(reply.ours(), ["x-loopbreaker-session", "x-loopbreaker-verdict"]);
}

#[test]
fn the_providers_host_stands_in_the_host_header_and_hop_by_hop_headers_stay_behind() {
    let provider =
        Provider::answering(answer("200 OK", &[("connection", "x-private"), ("x-private", "1")], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let hops = [
        ("connection", "keep-alive, X-Hop"),
        ("keep-alive", "timeout=5"),
        ("x-hop", "1"),
        ("proxy-authorization", "Basic x"),
        ("proxy-connection", "keep-alive"),
        ("te", "trailers"),
        ("x-end", "1"),
    ];
    let reply = lab.ask("GET", "/v1/models", &hops, "");
    let head = &provider.seen()[0].head;
    assert_eq!(head.get("host"), Some(provider.address().to_string().as_str()));
    assert_eq!(end_to_end(&head.headers), pairs(&[("x-end", "1")]));
    assert_eq!(reply.header("x-private"), None);
}

#[test]
fn path_and_query_keep_their_bytes() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let targets = [
        "/v1/files/a%2Fb%20c?x=1&x=2&y",
        "/v1/files?",
        "/v1/x/../y//z",
        "/v1/models?q=%C3%A9+%26&e=",
        "/v1/f;p=1,2@3:4",
    ];
    for target in targets {
        lab.get(target);
    }
    let seen: Vec<String> = provider.seen().into_iter().map(|asked| asked.head.first).collect();
    assert_eq!(seen, targets.map(|target| format!("GET {target} HTTP/1.1")));
}

#[test]
fn a_body_keeps_its_bytes_whatever_its_framing() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let body = "{ \"messages\" : [ {\"role\":\"user\",\"content\":\"h\\u00e9llo \\/ é\"} ],\n\t\"model\":\"m\", \"n\":1.0e0 }\n";
    lab.chat(&[], body);
    let mut wire = lab.wire();
    wire.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    for byte in body.bytes() {
        wire.send(&chunk(&[byte]));
    }
    wire.send(b"0\r\n\r\n");
    assert_eq!(wire.reply().status, 200);
    for asked in provider.seen() {
        assert_eq!(String::from_utf8_lossy(&asked.body), body);
    }
    assert_eq!(provider.seen().len(), 2);
}

#[test]
fn bodies_that_we_do_not_understand_are_forwarded_as_they_came() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let bodies: [&[u8]; 14] = [
        br#"{"model":"m","messages":[{"role":"user","content":"hi","new_field":{"a":[1,2]}}],"future":true}"#,
        br#"{"model":"a","model":"b","messages":[],"messages":[{"role":"user","content":"x"}]}"#,
        b"not json at all",
        b"{\"messages\":[",
        b"[]",
        b"null",
        b"\xff\xfe\x00binary",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}",
        br#"{"messages":[{"role":"user","content":"\ud800 alone"}]}"#,
        br#"{"messages":[{"role":"user","content":"\u0000"}]}"#,
        b"{\"messages\":\"no list\",\"model\":7}",
        b"\xef\xbb\xbf{\"messages\":[]}",
        br#"{"messages":[{"role":"tool","content":{}},{"role":7},null,5,"x",[]]}"#,
        b"{\"messages\":[{\"role\":\"user\",\"content\":1e999999}],\"max_tokens\":-1,\"n\":99999999999999999999}",
    ];
    let paths = [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/responses",
        "/v1beta/models/gemini-2.5-pro:generateContent",
    ];
    for path in paths {
        for body in bodies {
            let reply = lab.post(path, &[("content-type", "application/json")], body);
            assert_eq!(reply.status, 200, "{path} {}", String::from_utf8_lossy(body));
        }
    }
    let seen: Vec<Vec<u8>> = provider.seen().into_iter().map(|asked| asked.body).collect();
    let sent: Vec<Vec<u8>> = paths.iter().flat_map(|_| bodies.map(<[u8]>::to_vec)).collect();
    assert_eq!(seen, sent);
}

#[test]
fn a_deeply_nested_body_is_forwarded_and_hurts_nobody() {
    let lab = Lab::new();
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        format!(r#"{{"model":"m","messages":[{{"role":"user","content":{open}1{close}}}]}}"#)
    };
    for body in [deep("[", "]"), deep("{\"a\":", "}"), "[".repeat(1 << 20)] {
        lab.chat(&[], &body);
        assert_eq!(lab.mock.requests().last().unwrap().body, body.as_bytes());
    }
    assert_eq!(lab.get("/livez").status, 200);
    assert!(lab.metric("loopbreaker_panics_total") == 0.0);
}

#[test]
fn a_status_of_the_providers_own_keeps_its_words() {
    let provider = Provider::answering(answer("529 Site is overloaded", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(wire.head().first, "HTTP/1.1 529 Site is overloaded");
}

#[test]
fn the_status_of_the_provider_is_passed_on_with_its_body() {
    for status in [
        "201 Created", "302 Found", "400 Bad Request", "404 Not Found", "418 I'm a teapot", "429 Slow",
        "529 Busy",
    ] {
        let provider = Provider::answering(answer(status, &[("retry-after", "7")], b"{\"its\":\"own\"}"));
        let lab = Bench::new().upstream(provider.url()).start();
        let reply = lab.chat(&[], question("hello"));
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (status[..3].parse().unwrap(), "{\"its\":\"own\"}")
        );
        assert_eq!(reply.header("retry-after"), Some("7"));
        assert_eq!(reply.header("x-should-retry"), None, "that one is ours");
    }
}

#[test]
fn a_request_on_a_connection_that_was_used_before_is_answered_as_well() {
    let lab = Lab::new();
    let mut wire = lab.wire();
    for round in 0..20 {
        wire.send(&request(
            "POST",
            "/v1/chat/completions",
            &[],
            question(&format!("question {round}")).as_bytes(),
        ));
        assert_eq!(wire.reply().status, 200);
    }
    assert_eq!(lab.sent(), 20);
}

#[test]
fn a_hint_takes_no_header_away() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    for times in 1..=3 {
        lab.chat(&[("accept-encoding", "gzip, br")], crate::talk::looping("fix it", times));
    }
    let hinted = provider.seen().pop().unwrap();
    assert!(String::from_utf8_lossy(&hinted.body).contains("[Loopbreaker]"));
    let headers = end_to_end(&hinted.head.headers);
    assert!(headers.contains(&("accept-encoding".to_owned(), "gzip, br".to_owned())), "{headers:?}");
}

#[test]
fn an_answer_with_hundreds_of_headers_is_passed_on() {
    let names: Vec<String> = (0..900).map(|number| format!("x-header-{number}")).collect();
    let given: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let provider = Provider::answering(answer("200 OK", &given, b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let reply = lab.chat(&[], question("hello"));
    assert_eq!(reply.status, 200);
    assert_eq!(end_to_end(&reply.head.headers), pairs(&given));
}
