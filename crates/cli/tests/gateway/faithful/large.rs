//! Large bodies: refused where they would have to be read whole, streamed where not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::wire::{chunk, request};

const MIB: usize = 1 << 20;

/// A provider that counts what it reads of a body as it comes.
fn counting() -> (Provider, Arc<AtomicUsize>) {
    let counted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&counted);
    let provider = Provider::doing(move |conversation| {
        let Some(head) = conversation.wire.try_head() else { return };
        let count = |bytes: usize| counter.fetch_add(bytes, Ordering::AcqRel);
        if let Some(length) = head.get("content-length") {
            for _ in 0..length.parse::<usize>().unwrap() {
                conversation.wire.bytes(1);
                count(1);
            }
        } else {
            while let Some(piece) = conversation.wire.chunk() {
                count(piece.len());
            }
        }
        conversation.wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    });
    (provider, counted)
}

#[test]
fn a_body_over_32_mib_is_refused_in_the_shape_of_its_dialect() {
    let lab = Lab::new();
    let body = vec![b' '; 32 * MIB + 1];
    let message = |json: &serde_json::Value| json["error"]["message"].as_str().unwrap().to_owned();

    let chat = lab.post("/v1/chat/completions", &[], &body);
    assert_eq!((chat.status, chat.code().as_str()), (413, "request_too_large"));
    assert!(message(&chat.json()).contains("32 MiB"));
    let responses = lab.post("/v1/responses", &[], &body);
    assert_eq!((responses.status, responses.code().as_str()), (413, "request_too_large"));
    let anthropic = lab.post("/v1/messages", &[("x-api-key", "k")], &body);
    assert_eq!((anthropic.status, anthropic.json()["type"].as_str()), (413, Some("error")));
    assert_eq!(anthropic.json()["error"]["type"], "request_too_large");
    let gemini = lab.post("/v1beta/models/gemini-2.5-pro:generateContent", &[], &body);
    assert_eq!((gemini.status, gemini.json()["error"]["code"].as_u64()), (413, Some(413)));
    assert_eq!(gemini.json()["error"]["details"][0]["domain"], "loopbreaker");
    assert_eq!(lab.sent(), 0);
}

#[test]
fn a_client_that_writes_everything_before_it_reads_still_sees_the_413() {
    let lab = Lab::new();
    for _ in 0..3 {
        let mut wire = lab.wire();
        let mut head = String::from(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        head.push_str("");
        wire.send(head.as_bytes());
        let piece = chunk(&vec![b' '; MIB]);
        for _ in 0..40 {
            assert!(wire.try_send(&piece), "the connection was reset under the client's hands");
        }
        assert!(wire.try_send(b"0\r\n\r\n"), "the connection was reset under the client's hands");
        assert_eq!(wire.reply().status, 413);
    }
}

#[test]
fn a_body_of_exactly_32_mib_passes() {
    let lab = Lab::new();
    let mut body = br#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]"#.to_vec();
    body.resize(32 * MIB - 1, b' ');
    body.push(b'}');
    assert_eq!(lab.chat(&[], &body).status, 200);
    assert_eq!(lab.mock.requests()[0].body.len(), 32 * MIB);
}

#[test]
fn what_is_too_large_is_not_asked_for() {
    let lab = Lab::new();
    let mut wire = lab.wire();
    wire.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 99999999999\r\n\r\n",
    );
    assert_eq!(wire.head().status(), 413);
}

#[test]
fn another_path_takes_bodies_of_any_size() {
    let (provider, counted) = counting();
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    let piece = chunk(&vec![7; MIB]);
    for _ in 0..40 {
        wire.send(&piece);
    }
    wire.send(b"0\r\n\r\n");
    assert_eq!(wire.reply().status, 200);
    assert_eq!(counted.load(Ordering::Acquire), 40 * MIB);
}

#[test]
fn another_path_is_not_buffered() {
    let (provider, counted) = counting();
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\nfirst half");
    until("the provider has the first half", || counted.load(Ordering::Acquire) == 10);
    wire.send(b"other half");
    assert_eq!(wire.reply().status, 200);
}

#[test]
fn where_requests_are_counted_on_every_path_no_more_than_one_mib_is_held_back() {
    let (provider, counted) = counting();
    let config = "policies: [{ id: all, spec: { selector: { pathPrefix: / }, loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 5 } } }]";
    let lab = Bench::new().config(config).upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    wire.send(&chunk(&vec![7; 2 * MIB]));
    until("the provider has more than a half", || counted.load(Ordering::Acquire) > MIB);
    wire.send(b"0\r\n\r\n");
    assert_eq!(wire.reply().status, 200);
    assert_eq!(counted.load(Ordering::Acquire), 2 * MIB);
}

#[test]
fn a_large_body_that_is_cut_off_reaches_no_provider() {
    let lab = Lab::new();
    let mut wire = lab.wire();
    let whole = request("POST", "/v1/chat/completions", &[], &vec![b' '; MIB]);
    wire.send(&whole[..MIB / 2]);
    drop(wire);
    assert_eq!(lab.get("/v1/models").status, 200);
    assert_eq!(lab.sent(), 1, "only the other request");
}
