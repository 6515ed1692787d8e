//! Compressed bodies: read for inspection, forwarded as they came.

use std::io::Write as _;

use loopbreaker_mock::{Encoding, Turn};

use crate::lab::{Bench, Lab};
use crate::provider::Provider;
use crate::talk::looping;
use crate::wire::answer;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Brotli in one block that is stored as it is: a window of 16 bits, four nibbles of length, then the empty last block.
fn brotli(text: &[u8]) -> Vec<u8> {
    assert!(text.len() <= 1 << 16);
    let bits = ((text.len() as u64 - 1) << 4) | (1 << 20);
    [&bits.to_le_bytes()[..3], text, &[3]].concat()
}

fn every_coding(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let text = text.as_bytes();
    vec![
        ("gzip", gzip(text)),
        ("deflate", deflate(text)),
        ("br", brotli(text)),
        ("zstd", zstd::encode_all(text, 3).unwrap()),
    ]
}

#[test]
fn a_compressed_body_is_inspected_and_forwarded_as_it_came() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    for (coding, packed) in every_coding(&looping("fix it", 2)) {
        let reply = lab.chat(&[("content-encoding", coding), ("x-session-id", coding)], &packed);
        assert_eq!(reply.header("x-loopbreaker-loop"), Some("kind=repeat; count=2"), "{coding}");
        let seen = provider.seen().pop().unwrap();
        assert_eq!(seen.head.get("content-encoding"), Some(coding));
        assert!(seen.body == packed, "{coding}");
    }
}

#[test]
fn a_compressed_body_that_gets_a_hint_is_sent_plain() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    for (coding, packed) in every_coding(&looping("fix it", 3)) {
        let reply = lab.chat(&[("content-encoding", coding), ("x-session-id", coding)], &packed);
        assert_eq!(reply.header("x-loopbreaker-verdict"), Some("hint"), "{coding}");
        let seen = provider.seen().pop().unwrap();
        assert_eq!(seen.head.get("content-encoding"), None);
        assert!(String::from_utf8(seen.body).unwrap().contains("[Loopbreaker]"), "{coding}");
    }
}

#[test]
fn a_body_in_a_coding_that_we_do_not_read_is_forwarded_and_said_to_be_unread() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let bodies = [
        ("compress", b"whatever".to_vec()),
        ("gzip", b"broken".to_vec()),
        ("gzip, gzip", gzip(&gzip(b"{}"))),
    ];
    for (coding, body) in bodies {
        let reply = lab.chat(&[("content-encoding", coding)], &body);
        assert_eq!(reply.status, 200);
        assert_eq!(provider.seen().pop().unwrap().body, body);
    }
    for line in lab.logged(3) {
        assert_eq!(line["degraded"][0], "body");
    }
}

#[test]
fn a_body_that_unpacks_to_gigabytes_is_forwarded_unread() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    // A zstd frame of blocks that each repeat one byte 128 KiB times: 4 GiB in 128 KiB.
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for _ in 0..32_768 {
        bomb.extend([0x02, 0x00, 0x10, b'x']);
    }
    bomb.extend([0x01, 0x00, 0x00]);
    let before = lab.metric("process_resident_memory_bytes");
    let reply = lab.chat(&[("content-encoding", "zstd")], &bomb);
    assert_eq!(reply.status, 200);
    assert!(provider.seen()[0].body == bomb);
    let grown = lab.metric("process_resident_memory_bytes") - before;
    assert!(grown < 150e6, "it grew by {grown} bytes");
}

#[test]
fn an_answer_that_unpacks_to_gigabytes_passes_in_bounded_memory() {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for _ in 0..32_768 {
        bomb.extend([0x02, 0x00, 0x10, b'x']);
    }
    bomb.extend([0x01, 0x00, 0x00]);
    let headers = [("content-type", "application/json"), ("content-encoding", "zstd")];
    let provider = Provider::answering(answer("200 OK", &headers, &bomb));
    let lab = Bench::new().upstream(provider.url()).start();
    let before = lab.metric("process_resident_memory_bytes");
    let reply = lab.chat(&[], looping("fix it", 1));
    assert!(reply.body == bomb, "it is passed on as it came");
    let grown = lab.metric("process_resident_memory_bytes") - before;
    assert!(grown < 150e6, "it grew by {grown} bytes");
}

#[test]
fn a_compressed_answer_passes_as_it_came_and_its_usage_is_read() {
    let lab = Lab::new();
    let usage = loopbreaker_mock::Usage { input: 11, output: 22, ..Default::default() };
    lab.mock.script([Turn { encoding: Some(Encoding::Gzip), ..Turn::text("hello").usage(usage) }]);
    let reply = lab.chat(&[("accept-encoding", "gzip")], looping("fix it", 1));
    assert_eq!(reply.header("content-encoding"), Some("gzip"));
    assert_eq!(&reply.body[..2], b"\x1f\x8b");
    let line = &lab.logged(1)[0];
    assert_eq!((&line["tokens"]["input"], &line["tokens"]["output"]), (&11.into(), &22.into()));
}
