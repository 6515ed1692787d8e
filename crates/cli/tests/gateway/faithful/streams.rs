//! Bodies that come piece by piece pass piece by piece.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::talk::{looping, question};
use crate::wire::{answer, chunk, request};

const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn each_piece_of_a_stream_is_passed_on_before_the_next_is_there() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let provider = Provider::doing(move |conversation| {
        conversation.asked();
        conversation.wire.send(STREAM);
        for index in 0..5 {
            conversation.wire.send(&chunk(format!("data: {{\"piece\":{index}}}\n\n").as_bytes()));
            wait.lock().unwrap().recv().unwrap();
        }
        conversation.wire.send(b"0\r\n\r\n");
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(&request("POST", "/v1/chat/completions", &[], question("hello").as_bytes()));
    assert_eq!(wire.head().get("content-type"), Some("text/event-stream"));
    for index in 0..5 {
        assert_eq!(wire.chunk().unwrap(), format!("data: {{\"piece\":{index}}}\n\n").as_bytes());
        go.send(()).unwrap();
    }
    assert_eq!(wire.chunk(), None);
}

#[test]
fn a_stream_is_known_by_its_type_however_that_is_written() {
    let chunk_of = |words: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n")
    };
    for content_type in ["text/event-stream", "Text/Event-Stream", "TEXT/EVENT-STREAM ; charset=UTF-8"] {
        let head = String::from_utf8_lossy(STREAM).replace("text/event-stream", content_type);
        let event = chunk_of("I need to check the configuration once more. ");
        let provider = Provider::doing(move |conversation| {
            conversation.asked();
            conversation.wire.send(head.as_bytes());
            for _ in 0..60 {
                conversation.wire.send(&chunk(event.as_bytes()));
            }
            conversation.wire.send(b"0\r\n\r\n");
        });
        let lab = Bench::new().upstream(provider.url()).start();
        let text = lab.chat(&[], question("hello")).text();
        assert!(
            text.matches("once more").count() < 60 && text.ends_with("data: [DONE]\n\n"),
            "{content_type}"
        );
    }
}

#[test]
fn a_stream_in_pieces_of_one_byte_stays_what_it_is() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"héllo\"}}]}\r\n\r\n: comment\n\nevent: x\ndata: [DONE]\n\n";
    let provider = Provider::doing(move |conversation| {
        conversation.asked();
        conversation.wire.send(STREAM);
        for byte in text.bytes() {
            conversation.wire.send(&chunk(&[byte]));
        }
        conversation.wire.send(b"0\r\n\r\n");
    });
    let lab = Bench::new().upstream(provider.url()).start();
    assert_eq!(lab.chat(&[], question("hello")).text(), text);
}

#[test]
fn a_line_of_sixteen_megabytes_passes_a_stream() {
    let line = format!("data: {}\n\n", "x".repeat(16 << 20));
    let sent = line.clone();
    let provider = Provider::doing(move |conversation| {
        conversation.asked();
        conversation.wire.send(STREAM);
        for piece in sent.as_bytes().chunks(60_000) {
            conversation.wire.send(&chunk(piece));
        }
        conversation.wire.send(b"0\r\n\r\n");
    });
    let lab = Bench::new().upstream(provider.url()).start();
    assert_eq!(lab.chat(&[], question("hello")).body.len(), line.len());
}

#[test]
fn an_answer_that_ends_with_its_connection_is_passed_on_whole() {
    let provider = Provider::doing(|conversation| {
        conversation.asked();
        conversation.wire.send(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"old\":");
        conversation.wire.send(b"\"style\"}");
    });
    let lab = Bench::new().upstream(provider.url()).start();
    assert_eq!(lab.chat(&[], question("hello")).text(), "{\"old\":\"style\"}");
}

#[test]
fn trailers_of_an_answer_arrive() {
    let provider = Provider::doing(|conversation| {
        conversation.asked();
        conversation.wire.send(
            b"HTTP/1.1 200 OK\r\ntrailer: x-checksum, grpc-status\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        conversation.wire.send(&chunk(b"hello"));
        conversation.wire.send(b"0\r\nx-checksum: abc\r\ngrpc-status: 0\r\n\r\n");
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let reply = lab.ask("GET", "/v1/models", &[("te", "trailers")], "");
    assert_eq!(reply.text(), "hello");
    let trailers: Vec<_> =
        reply.trailers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(trailers, [("x-checksum", "abc"), ("grpc-status", "0")]);
}

/// A provider that says yes to everything.
fn agreeing() -> Provider {
    Provider::answering(answer("200 OK", &[("content-type", "application/json")], b"{}"))
}

/// A request in chunks, with what comes behind them.
fn in_chunks(path: &str, headers: &str, body: &[u8], trailers: &str) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}transfer-encoding: chunked\r\n\r\n");
    let (start, rest) = body.split_at(body.len() / 2);
    let end = format!("0\r\n{trailers}\r\n");
    [head.as_bytes(), &chunk(start), &chunk(rest), end.as_bytes()].concat()
}

#[test]
fn trailers_of_a_request_arrive_however_its_body_is_read() {
    let provider = agreeing();
    let counts = "loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 9, action: warn }";
    let policy =
        format!("policies: [{{ id: p, spec: {{ selector: {{ pathExact: /v1/embeddings }}, {counts} }} }}]");
    let lab = Bench::new().upstream(provider.url()).config(&policy).start();
    let body = question("hello");
    let announced = "trailer: x-checksum\r\n";
    for (path, headers) in [
        ("/v1/chat/completions", announced),
        ("/v1/embeddings", announced),
        // Whoever reads all of a body can announce what no client has.
        ("/v1/chat/completions", ""),
        ("/v1/embeddings", ""),
        // This one passes as it comes.
        ("/v1/files", announced),
    ] {
        let mut wire = lab.wire();
        wire.send(&in_chunks(path, headers, body.as_bytes(), "x-checksum: abc\r\n"));
        assert_eq!(wire.reply().status, 200);
        let sent = provider.seen().pop().unwrap();
        assert_eq!(sent.trailers, [("x-checksum".to_owned(), "abc".to_owned())], "{path} {headers}");
        assert_eq!((sent.body.as_slice(), sent.head.get("content-length")), (body.as_bytes(), None));
    }
}

#[test]
fn a_request_without_trailers_is_sent_with_its_length() {
    let provider = agreeing();
    let lab = Bench::new().upstream(provider.url()).start();
    let body = question("hello");
    let mut wire = lab.wire();
    wire.send(&in_chunks("/v1/chat/completions", "", body.as_bytes(), ""));
    assert_eq!(wire.reply().status, 200);
    let sent = provider.seen().pop().unwrap();
    assert_eq!(sent.head.get("content-length"), Some(body.len().to_string().as_str()));
    assert_eq!((sent.head.get("trailer"), sent.head.get("transfer-encoding")), (None, None));
}

#[test]
fn a_trailer_takes_neither_a_credential_to_another_provider_nor_a_digest_behind_an_edited_body() {
    let provider = agreeing();
    let lab = Bench::new().upstream(provider.url()).start();
    let trailers =
        "x-goog-api-key: secret\r\ndigest: md5=abc\r\nx-loopbreaker-verdict: allow\r\nx-note: kept\r\n";
    for (times, expected) in [(1, vec!["digest", "x-note"]), (3, vec!["x-note"])] {
        let mut wire = lab.wire();
        wire.send(&in_chunks("/v1/chat/completions", "", looping("mend it", times).as_bytes(), trailers));
        assert_eq!(wire.reply().status, 200);
        let sent = provider.seen().pop().unwrap();
        let mut names: Vec<&str> = sent.trailers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{times}");
        assert_eq!(String::from_utf8_lossy(&sent.body).contains("[Loopbreaker]"), times == 3);
    }
}

#[test]
fn a_provider_that_answers_before_the_upload_ends_is_heard_at_once() {
    let provider = Provider::doing(|conversation| {
        conversation.wire.head();
        conversation.wire.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}");
        conversation.asked();
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nfirst bytes");
    assert_eq!(wire.reply().status, 403);
}

#[test]
fn a_connection_whose_upload_never_ended_is_not_given_to_the_next_request() {
    let provider = Provider::doing(|conversation| {
        while let Some(head) = conversation.wire.try_head() {
            let early = head.first.contains("/v1/files");
            conversation.wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
            if early {
                // The rest of the upload is never read.
                conversation.asked();
            }
        }
    });
    let lab = Bench::new().upstream(provider.url()).arg("--workers").arg("1").start();
    let mut upload = lab.wire();
    upload.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nfirst bytes");
    assert_eq!(upload.reply().status, 200);
    for _ in 0..3 {
        assert_eq!(lab.get("/v1/models").status, 200);
    }
}

#[test]
fn the_provider_is_told_when_the_client_goes() {
    let lab = Lab::new();
    let endless = loopbreaker_mock::Turn::text("word ".repeat(5_000)).chunk_delay_ms(5);
    lab.mock.script([endless]);
    let mut wire = lab.wire();
    let body = r#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    wire.send(&request("POST", "/v1/chat/completions", &[], body.as_bytes()));
    wire.head();
    wire.chunk();
    drop(wire);
    until("the provider's stream was dropped", || {
        lab.mock.requests()[0].outcome == loopbreaker_mock::Outcome::Dropped
    });
}
