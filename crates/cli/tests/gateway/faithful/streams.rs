//! Bodies that come piece by piece pass piece by piece.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::talk::question;
use crate::wire::{chunk, request};

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
