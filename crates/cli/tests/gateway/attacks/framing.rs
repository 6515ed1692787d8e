//! Messages whose end two readers might see in different places.

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::wire::{Asked, answer, chunk, request};

/// A lab and the provider behind it that sees raw bytes.
fn raw() -> (Lab, Provider) {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    (Bench::new().upstream(provider.url()).start(), provider)
}

#[test]
fn a_length_beside_chunks_is_ignored_and_not_passed_on() {
    let (lab, provider) = raw();
    for path in ["/v1/chat/completions", "/v1/files"] {
        for headers in [
            "content-length: 5\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked\r\ncontent-length: 5",
        ] {
            let mut wire = lab.wire();
            wire.send(format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n").as_bytes());
            wire.send(&chunk(b"{\"whole\":\"body\"}"));
            wire.send(b"0\r\n\r\n");
            let Some(reply) = wire.try_reply() else { continue };
            if reply.status == 200 {
                let seen = provider.seen().pop().unwrap();
                assert_eq!(String::from_utf8_lossy(&seen.body), "{\"whole\":\"body\"}", "{path} {headers:?}");
                let framing =
                    ["content-length", "transfer-encoding"].map(|name| seen.head.get(name).is_some());
                assert_ne!(framing, [true, true], "{path} {headers:?}");
            }
        }
    }
    assert!(!provider.seen().is_empty());
}

#[test]
fn nothing_that_is_hidden_in_a_body_reaches_the_provider_as_a_request() {
    let framings = [
        "content-length: 5\r\ncontent-length: 6\r\n".to_owned(),
        "content-length: 5, 6\r\n".to_owned(),
        "content-length: +5\r\n".to_owned(),
        "content-length: -5\r\n".to_owned(),
        "content-length: 0x5\r\n".to_owned(),
        "content-length: 5 5\r\n".to_owned(),
        "content-length: 18446744073709551616\r\n".to_owned(),
        "content-length: \r\n".to_owned(),
        "content-length : 5\r\n".to_owned(),
        " content-length: 5\r\n".to_owned(),
        "content-length: 5\r\ntransfer-encoding: chunked\r\n".to_owned(),
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n".to_owned(),
        "transfer-encoding: chunked, identity\r\n".to_owned(),
        "transfer-encoding: identity, chunked\r\n".to_owned(),
        "transfer-encoding: xchunked\r\ncontent-length: 5\r\n".to_owned(),
        "transfer-encoding: identity\r\ncontent-length: 5\r\n".to_owned(),
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n".to_owned(),
        "transfer-encoding: \x0bchunked\r\ncontent-length: 5\r\n".to_owned(),
        "transfer-encoding : chunked\r\ncontent-length: 5\r\n".to_owned(),
        "transfer-encoding:\r\n chunked\r\ncontent-length: 5\r\n".to_owned(),
        "transfer_encoding: chunked\r\ncontent-length: 5\r\n".to_owned(),
        "x: y\rtransfer-encoding: chunked\r\ncontent-length: 5\r\n".to_owned(),
        "connection: content-length\r\ncontent-length: 5\r\n".to_owned(),
        "connection: transfer-encoding\r\ntransfer-encoding: chunked\r\n".to_owned(),
        "expect: 100-continue\r\ncontent-length: 5\r\n".to_owned(),
        "upgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 5\r\n".to_owned(),
    ];
    let (lab, provider) = raw();
    let mut attempts = Vec::new();
    for path in ["/v1/chat/completions", "/v1/files"] {
        for framing in &framings {
            for before in ["hello", "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"] {
                let id = attempts.len();
                let hidden = format!("GET /v1/models?hidden={id} HTTP/1.1\r\nhost: x\r\n\r\n");
                let mut wire = lab.wire();
                wire.try_send(
                    format!("POST {path}?id={id} HTTP/1.1\r\nhost: x\r\n{framing}\r\n{before}{hidden}")
                        .as_bytes(),
                );
                attempts.push((wire, format!("{path} {framing:?} {before:?}")));
            }
        }
    }
    // What we take for a second request is one, and is answered. What we take for a body must be one for the provider
    // too, on whichever of its connections: then it gets no more requests than there are answers.
    for (id, (wire, attempt)) in attempts.iter_mut().enumerate() {
        until(attempt, || {
            let answered = wire.answers_so_far();
            let of_this = |asked: &Asked| {
                let target = asked.head.first.split(' ').nth(1).unwrap_or_default();
                target.ends_with(&format!("?id={id}")) || target.ends_with(&format!("?hidden={id}"))
            };
            provider.seen().iter().filter(|asked| of_this(asked)).count() <= answered
        });
    }
    assert!(provider.seen().len() > 10, "some of them are fine");
    assert_eq!(lab.get("/livez").status, 200);
}

#[test]
fn a_body_that_looks_like_a_request_stays_a_body() {
    let (lab, provider) = raw();
    let hidden = "GET /v1/hidden HTTP/1.1\r\nhost: x\r\n\r\n";
    for path in ["/v1/chat/completions", "/v1/files"] {
        for _ in 0..5 {
            assert_eq!(lab.post(path, &[], hidden).status, 200);
        }
    }
    assert!(provider.seen().iter().all(|asked| asked.body == hidden.as_bytes()));
    assert_eq!(provider.seen().len(), 10);
}

fn lab_is_hurt(lab: &Lab) -> bool {
    lab.get("/livez").status != 200
}

#[test]
fn chunks_with_extensions_and_odd_sizes_are_read_or_refused() {
    let (lab, provider) = raw();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let bodies = [
        ("5;name=value\r\nhello\r\n0\r\n\r\n", Some("hello")),
        ("00000005\r\nhello\r\n0\r\n\r\n", Some("hello")),
        ("A\r\n0123456789\r\n0\r\n\r\n", Some("0123456789")),
        ("5\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n", Some("hello")),
        ("-5\r\nhello\r\n0\r\n\r\n", None),
        ("0x5\r\nhello\r\n0\r\n\r\n", None),
        ("fffffffffffffffff\r\nhello\r\n0\r\n\r\n", None),
        ("5\r\nhelloXX0\r\n\r\n", None),
        ("5\nhello\n0\n\n", None),
        ("\r\n\r\n", None),
    ];
    for (body, expected) in bodies {
        let before = provider.seen().len();
        let mut wire = lab.wire();
        wire.send(format!("{head}{body}").as_bytes());
        let status = wire.try_reply().map(|reply| reply.status);
        assert!(expected.is_some() == (status == Some(200)), "{body:?}: {status:?}");
        let seen = provider
            .seen()
            .into_iter()
            .nth(before)
            .map(|asked| String::from_utf8_lossy(&asked.body).into_owned());
        assert_eq!(seen.as_deref(), expected, "{body:?}");
    }
}

#[test]
fn bytes_that_no_request_has_are_refused() {
    let (lab, provider) = raw();
    let requests: [&[u8]; 12] = [
        b"GET /v1/\0models HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n",
        b"GET /v1/mo dels HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v1/models\r\n\r\n",
        b"GET /v1/models HTTP/3.0\r\nhost: x\r\n\r\n",
        b"G\xffT /v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET\t/v1/models\tHTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\n: no name\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for bytes in requests {
        let mut wire = lab.wire();
        wire.try_send(bytes);
        wire.half_close();
        // An answer of HTTP/2 is none that is read here; whatever it is, the connection ends.
        if !bytes.starts_with(b"PRI") {
            let status = wire.try_head().map(|head| head.status());
            assert!(
                status.is_none_or(|status| status >= 400),
                "{status:?} {:?}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert!(!lab_is_hurt(&lab));
    }
    assert_eq!(provider.seen().len(), 0);
}

#[test]
fn odd_methods_are_passed_on_or_refused() {
    let (lab, provider) = raw();
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "FOO", "post"] {
        let reply = lab.ask(method, "/v1/models", &[], "");
        assert_eq!(reply.status, 200, "{method}");
        assert!(provider.seen().pop().unwrap().head.first.starts_with(&format!("{method} /v1/models ")));
    }
    let count = provider.seen().len();
    for target in
        ["CONNECT 127.0.0.1:80", "CONNECT /v1/models", "OPTIONS *", "GET *", "GET v1/models", "GET ?x"]
    {
        let mut wire = lab.wire();
        wire.send(format!("{target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        let status = wire.try_head().map(|head| head.status());
        assert!(status.is_none_or(|status| status >= 400), "{target}: {status:?}");
    }
    assert_eq!(provider.seen().len(), count);
}

#[test]
fn a_client_that_closes_its_half_gets_its_answer_or_nothing_and_hurts_nobody() {
    let (lab, _provider) = raw();
    let mut wire = lab.wire();
    wire.send(&request("POST", "/v1/chat/completions", &[], b"{}"));
    wire.half_close();
    if let Some(reply) = wire.try_reply() {
        assert_eq!(reply.status, 200);
    }
    assert!(!lab_is_hurt(&lab));
}

#[test]
fn an_answer_with_two_framings_is_not_passed_on_with_both() {
    let provider = Provider::doing(|conversation| {
        conversation.asked();
        conversation.wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n");
        conversation.wire.send(&chunk(b"{\"whole\":\"answer\"}"));
        conversation.wire.send(b"0\r\n\r\n");
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(&request("GET", "/v1/models", &[], b""));
    let reply = wire.reply();
    if reply.status == 200 {
        assert_eq!(reply.text(), "{\"whole\":\"answer\"}");
        let framing = ["content-length", "transfer-encoding"].map(|name| reply.header(name).is_some());
        assert_ne!(framing, [true, true]);
    }
}

#[test]
fn a_request_that_names_no_host_is_refused_where_one_must_be_named() {
    let (lab, provider) = raw();
    for (version, status) in [("1.1", 400), ("1.0", 200)] {
        let mut wire = lab.wire();
        wire.send(format!("GET /v1/models HTTP/{version}\r\nauthorization: Bearer k\r\n\r\n").as_bytes());
        assert_eq!(wire.reply().status, status, "HTTP/{version}");
    }
    assert_eq!(provider.seen().len(), 1);
}
