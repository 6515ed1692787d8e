//! Recorded answers and streams, and what is read from them.

use loopbreaker_dialect::{Answer, Dialect, StreamReader, read_answer};

use crate::golden;

fn streamed(dialect: Dialect, stream: &[u8]) -> (Answer, bool, u64) {
    let mut reader = StreamReader::new(dialect, true);
    assert_eq!(reader.feed(stream), None);
    let (complete, skipped) = (reader.complete(), reader.skipped());
    (reader.finish(), complete, skipped)
}

#[test]
fn every_recorded_answer_is_read_as_before() {
    for dialect in Dialect::ALL {
        for (name, body) in golden::inputs(dialect, "answer") {
            golden::check(dialect, &name, &format!("{:#?}\n", read_answer(dialect, &body)));
        }
    }
}

#[test]
fn every_recorded_stream_is_read_as_before() {
    for dialect in Dialect::ALL {
        for (name, stream) in golden::inputs(dialect, "stream") {
            let (answer, complete, skipped) = streamed(dialect, &stream);
            golden::check(
                dialect,
                &name,
                &format!("complete: {complete}, skipped: {skipped}\n{answer:#?}\n"),
            );
        }
    }
}

#[test]
fn a_list_of_chunks_says_the_same_as_events() {
    let inputs = golden::inputs(Dialect::Gemini, "stream");
    let answers = inputs.iter().map(|(_, stream)| streamed(Dialect::Gemini, stream).0);
    let answers: Vec<_> = answers
        .map(|mut answer| {
            // The arguments are given out as they are written, with other white space in each.
            answer.calls[0].args.retain(|char| !char.is_whitespace());
            Answer { text_bytes: 0, ..answer }
        })
        .collect();
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn what_is_no_answer_is_none() {
    for dialect in Dialect::ALL {
        for body in [&b""[..], b"{}", b"[]", b"null", b"{\"error\":{}}", b"\xff", b"<html>"] {
            assert_eq!(read_answer(dialect, body), None, "{dialect} {}", String::from_utf8_lossy(body));
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_not_complete_but_says_what_it_had() {
    for dialect in Dialect::ALL {
        for (_, stream) in golden::inputs(dialect, "stream") {
            let half = &stream[..stream.len() / 2];
            let (answer, complete, _) = streamed(dialect, half);
            assert!(!complete && answer.model.is_some() && answer.text_bytes > 0, "{dialect} {answer:?}");
        }
    }
}

#[test]
fn an_event_of_more_than_eight_megabytes_is_passed_over_and_counted() {
    for dialect in Dialect::ALL {
        let (_, stream) = golden::inputs(dialect, "stream-calls").remove(0);
        let mut reader = StreamReader::new(dialect, true);
        let long = format!("data: {{\"x\":\"{}\"}}\n\n", "x".repeat(9 << 20));
        for piece in long.as_bytes().chunks(10_000) {
            reader.feed(piece);
        }
        reader.feed(&stream);
        assert_eq!(reader.skipped(), 1);
        assert_eq!(reader.finish(), streamed(dialect, &stream).0);
    }
}

#[test]
fn the_usage_in_an_event_with_a_picture_is_read() {
    let data = "A".repeat(3 << 20);
    let event = format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"inlineData\":{{\"data\":\"{data}\"}}}}]}}}}],\
         \"usageMetadata\":{{\"promptTokenCount\":10,\"candidatesTokenCount\":1290}}}}\r\n\r\n"
    );
    let mut reader = StreamReader::new(Dialect::Gemini, true);
    for piece in event.as_bytes().chunks(10_000) {
        reader.feed(piece);
    }
    assert_eq!(reader.finish().usage.unwrap().output, 1_290);
}

#[test]
fn only_the_beginning_of_a_long_answer_is_kept() {
    let text = "äöü ".repeat(40_000);
    let body = serde_json::json!({"choices":[{"index":0,"message":{"content": text}}]}).to_string();
    let answer = read_answer(Dialect::Chat, body.as_bytes()).unwrap();
    assert_eq!(answer.text_bytes, text.len() as u64);
    assert!(text.starts_with(&answer.text) && (65_530..=65_536).contains(&answer.text.len()));
}

#[test]
fn calls_are_kept_up_to_a_bound() {
    let mut reader = StreamReader::new(Dialect::Anthropic, false);
    reader.feed(b"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"b\",\"input\":{}}}\n\n");
    let piece = "x".repeat(100_000);
    for _ in 0..20 {
        let delta = format!(
            "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"partial_json\":\"{piece}\"}}}}\n\n"
        );
        reader.feed(delta.as_bytes());
    }
    let answer = reader.finish();
    assert_eq!(answer.text_bytes, 2_000_000);
    assert!((900_000..=1 << 20).contains(&answer.calls[0].args.len()));
}
