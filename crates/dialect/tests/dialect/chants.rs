//! Streams that go round in circles, and how they are ended.

use std::fmt::Write as _;

use loopbreaker_dialect::{Dialect, StreamReader};
use serde_json::Value;

use crate::golden;

const UNIT: [&str; 5] = ["I will ", "now fix ", "the \"bug\" ", "in größe", ".\n"];

/// A stream of words without an end, as each provider writes it.
pub(crate) fn chant_stream(dialect: Dialect) -> String {
    let words = || (0..40).flat_map(|_| UNIT).map(|word| Value::from(word).to_string());
    let mut stream = String::new();
    match dialect {
        Dialect::Chat => {
            for word in words() {
                write!(stream, "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1763200000,\"model\":\"gpt-5.2\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{word}}},\"finish_reason\":null}}]}}\n\n").unwrap();
            }
        }
        Dialect::Anthropic => {
            stream.push_str("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n");
            stream.push_str("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
            for word in words() {
                write!(stream, "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{word}}}}}\n\n").unwrap();
            }
        }
        Dialect::Responses => {
            let response = r#"{"id":"resp_1","object":"response","created_at":1763200000,"status":"in_progress","error":null,"incomplete_details":null,"instructions":null,"model":"gpt-5.2","output":[],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":null}"#;
            let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[]}"#;
            for event in [
                format!(r#"{{"type":"response.created","sequence_number":0,"response":{response}}}"#),
                format!(r#"{{"type":"response.in_progress","sequence_number":1,"response":{response}}}"#),
                format!(r#"{{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{reasoning}}}"#),
                format!(r#"{{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{reasoning}}}"#),
                r#"{"type":"response.output_item.added","sequence_number":4,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#.to_owned(),
                r#"{"type":"response.content_part.added","sequence_number":5,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}"#.to_owned(),
            ] {
                let kind = event.split('"').nth(3).unwrap();
                write!(stream, "event: {kind}\ndata: {event}\n\n").unwrap();
            }
            for (number, word) in (6..).zip(words()) {
                write!(stream, "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{number},\"item_id\":\"msg_1\",\"output_index\":1,\"content_index\":0,\"delta\":{word},\"logprobs\":[]}}\n\n").unwrap();
            }
        }
        Dialect::Gemini => {
            for (number, word) in (1..).zip(words()) {
                write!(stream, "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":{word}}}],\"role\":\"model\"}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":9,\"candidatesTokenCount\":{number},\"totalTokenCount\":9}},\"modelVersion\":\"gemini-2.5-flash\",\"responseId\":\"r-1\"}}\r\n\r\n").unwrap();
            }
        }
    }
    stream
}

/// What a client gets: the stream up to the cut, and what ends it.
fn cut(dialect: Dialect, stream: &str, frame: usize) -> Option<(usize, String)> {
    let mut reader = StreamReader::new(dialect, true);
    let mut passed = Vec::new();
    for piece in stream.as_bytes().chunks(frame) {
        if let Some(cut) = reader.feed(piece) {
            if !cut.can_end {
                return None;
            }
            passed.extend_from_slice(&piece[..cut.keep]);
            let length = passed.len();
            let closing = String::from_utf8(reader.closing()).unwrap();
            assert!(cut.chant.copies >= 5 && stream.starts_with(std::str::from_utf8(&passed).unwrap()));
            return Some((length, closing));
        }
        passed.extend_from_slice(piece);
    }
    None
}

#[test]
fn a_chant_is_cut_at_the_end_of_an_event_and_the_stream_ended_validly() {
    for dialect in Dialect::ALL {
        let stream = chant_stream(dialect);
        let (length, closing) = cut(dialect, &stream, 333).unwrap();
        assert!(stream[..length].ends_with("\n\n") || stream[..length].ends_with("\r\n\r\n"));
        assert!(length < stream.len() / 3, "{dialect} was cut at {length} of {}", stream.len());
        // The client reads one whole stream.
        let mut client = StreamReader::new(dialect, false);
        client.feed(&stream.as_bytes()[..length]);
        client.feed(closing.as_bytes());
        assert!(client.complete() && client.skipped() == 0, "{dialect}");
        let answer = client.finish();
        assert!(answer.finish.is_some() && answer.id.is_some());
        golden::check(dialect, "closing", &closing);
    }
}

#[test]
fn a_chant_inside_of_a_json_document_is_told_of_and_not_cut() {
    for dialect in Dialect::ALL {
        // Words that may stand in a JSON string as they are.
        let stream = chant_stream(dialect).replace("\\\"bug\\\"", "bug").replace(".\\n", ". ");
        let beginning = |words: &str| stream.replacen("\"I will \"", &Value::from(words).to_string(), 1);
        for document in ["{\"reason\": \"I will ", " [{\"a\": [1, \"I will "] {
            assert_eq!(cut(dialect, &beginning(document), 333), None, "{dialect} {document}");
        }
        for prose in ["[note] I will ", "{I} will ", "{\"done\": true} I will "] {
            assert!(cut(dialect, &beginning(prose), 333).is_some(), "{dialect} {prose}");
        }
    }
}

#[test]
fn a_chant_that_is_only_told_of_is_read_to_its_end_like_any_other_answer() {
    for dialect in Dialect::ALL {
        let stream = chant_stream(dialect);
        let mut deaf = StreamReader::new(dialect, false);
        deaf.feed(stream.as_bytes());
        let expected = deaf.finish();
        for frame in [7, 333, stream.len()] {
            let mut reader = StreamReader::new(dialect, true);
            let mut found = 0;
            for piece in stream.as_bytes().chunks(frame) {
                if let Some(cut) = reader.feed(piece) {
                    found += 1;
                    reader.go_on(&piece[cut.keep..]);
                }
            }
            assert_eq!((found, reader.finish()), (1, expected.clone()), "{dialect} in frames of {frame}");
        }
    }
}

#[test]
fn the_end_of_a_response_counts_on_and_has_all_that_was_said() {
    let stream = chant_stream(Dialect::Responses);
    let (length, closing) = cut(Dialect::Responses, &stream, 4_096).unwrap();
    let whole = stream[..length].to_owned() + &closing;
    let events: Vec<Value> = whole
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
    let said: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    let of = |kind: &str| events.iter().rfind(|event| event["type"] == kind).unwrap();
    assert_eq!(of("response.output_text.done")["text"], said);
    assert_eq!(of("response.content_part.done")["part"]["text"], said);
    assert_eq!(of("response.output_item.done")["item"]["content"][0]["text"], said);
    let response = &of("response.incomplete")["response"];
    assert_eq!(response["output"][0]["id"], "rs_1");
    assert_eq!(response["output"][1]["content"][0]["text"], said);
    assert_eq!((&response["status"], &response["id"]), (&Value::from("incomplete"), &Value::from("resp_1")));
}

#[test]
fn thoughts_that_go_round_in_circles_are_cut_as_well() {
    let chat = chant_stream(Dialect::Chat).replace("\"content\":", "\"reasoning_content\":");
    assert!(cut(Dialect::Chat, &chat, 500).is_some());
    let anthropic = chant_stream(Dialect::Anthropic)
        .replace("text_delta", "thinking_delta")
        .replace("\"text\":\"", "\"thinking\":\"");
    assert!(cut(Dialect::Anthropic, &anthropic, 500).is_some());
    let gemini = chant_stream(Dialect::Gemini).replace("}],\"role\"", ",\"thought\":true}],\"role\"");
    assert!(cut(Dialect::Gemini, &gemini, 500).is_some());
    let responses = chant_stream(Dialect::Responses)
        .replace("response.output_text.delta", "response.reasoning_summary_text.delta")
        .replace("response.content_part.added", "response.reasoning_summary_part.added")
        .replace("content_index", "summary_index")
        .replace("\"type\":\"output_text\"", "\"type\":\"summary_text\"")
        .replace("\"type\":\"message\"", "\"type\":\"reasoning\"");
    let (_, closing) = cut(Dialect::Responses, &responses, 500).unwrap();
    assert!(closing.starts_with("event: response.reasoning_summary_text.done"), "{closing}");
    assert!(closing.contains("\"summary\":[{\"type\":\"summary_text\",\"text\":\"I will"), "{closing}");
}

#[test]
fn a_list_of_chunks_is_ended_as_a_list() {
    let chunks: Vec<_> = chant_stream(Dialect::Gemini)
        .split("\r\n\r\n")
        .filter_map(|event| event.strip_prefix("data: ").map(str::to_owned))
        .collect();
    let stream = format!("[{}]", chunks.join("\n,\r\n"));
    let (length, closing) = cut(Dialect::Gemini, &stream, 1_000).unwrap();
    let whole: Vec<Value> = serde_json::from_str(&(stream[..length].to_owned() + &closing)).unwrap();
    assert_eq!(whole.last().unwrap()["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn nothing_is_cut_once_calls_have_begun_or_when_nobody_listens() {
    let call = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n";
    assert_eq!(cut(Dialect::Chat, &(call.to_owned() + &chant_stream(Dialect::Chat)), 700), None);
    let second = chant_stream(Dialect::Chat).replacen("\"index\":0", "\"index\":1", 1);
    assert_eq!(cut(Dialect::Chat, &second, 700), None, "with several choices none is cut");
    let call = "data: {\"type\":\"content_block_start\",\"index\":7,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}}\n\n";
    assert_eq!(cut(Dialect::Anthropic, &(call.to_owned() + &chant_stream(Dialect::Anthropic)), 700), None);
    // Arguments that repeat themselves are no words.
    let args = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"I will now fix the bug. \"}}]}}]}\n\n";
    assert_eq!(cut(Dialect::Chat, &args.repeat(100), 700), None);
    for dialect in Dialect::ALL {
        let mut reader = StreamReader::new(dialect, false);
        assert_eq!(reader.feed(chant_stream(dialect).as_bytes()), None);
    }
}

/// A stream in which this stands before the words that go round in circles.
fn behind(dialect: Dialect, before: &str) -> String {
    let stream = chant_stream(dialect);
    let at = match dialect {
        // Behind what opens the stream.
        Dialect::Anthropic | Dialect::Responses => stream.find("\n\n").unwrap() + 2,
        Dialect::Chat | Dialect::Gemini => 0,
    };
    [&stream[..at], before, &stream[at..]].concat()
}

/// The answer that a client reads when the stream is cut.
fn read_when_cut(dialect: Dialect, stream: &str) -> (loopbreaker_dialect::Answer, String) {
    let (length, closing) = cut(dialect, stream, 700).unwrap();
    assert!(length < stream.len() / 2, "{dialect} was cut at {length} of {}", stream.len());
    let mut client = StreamReader::new(dialect, false);
    client.feed(&stream.as_bytes()[..length]);
    client.feed(closing.as_bytes());
    assert!(client.complete() && client.skipped() == 0, "{dialect}");
    (client.finish(), closing)
}

fn events(all: &[&str]) -> String {
    all.iter().flat_map(|data| ["data: ", data, "\n\n"]).collect()
}

/// The events of calls that have ended, whoever runs them.
fn ended_calls(dialect: Dialect) -> Vec<String> {
    match dialect {
        Dialect::Chat => vec![],
        Dialect::Anthropic => ["tool_use", "server_tool_use"]
            .map(|kind| {
                events(&[
                    &format!(r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"{kind}","id":"c","name":"f","input":{{}}}}}}"#),
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
                    r#"{"type":"content_block_stop","index":0}"#,
                ])
            })
            .into(),
        Dialect::Responses => ["function_call", "web_search_call", "mcp_call"]
            .map(|kind| {
                let item = format!(r#"{{"id":"f","type":"{kind}","call_id":"c","name":"f","arguments":"{{\"a\":1}}","status":"completed"}}"#);
                events(&[
                    &format!(r#"{{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{item}}}"#),
                    r#"{"type":"response.function_call_arguments.delta","sequence_number":2,"output_index":0,"delta":"{\"a\":1}"}"#,
                    &format!(r#"{{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{item}}}"#),
                ])
            })
            .into(),
        Dialect::Gemini => vec![events(&[
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}}],"role":"model"},"index":0}]}"#,
        ])],
    }
}

#[test]
fn a_chant_behind_a_call_that_has_ended_is_cut_and_the_call_stays_whole() {
    for dialect in Dialect::ALL {
        for call in ended_calls(dialect) {
            let (answer, closing) = read_when_cut(dialect, &behind(dialect, &call));
            for call in &answer.calls {
                assert_eq!((call.tool.as_str(), call.args.as_str()), ("f", r#"{"a":1}"#), "{dialect}");
            }
            if dialect == Dialect::Anthropic {
                let reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
                assert_eq!(answer.finish.as_deref(), Some(reason), "a call that nobody runs has no result");
            }
            if dialect == Dialect::Responses {
                assert!(closing.contains(r#""output":[{"id":"f","type":"#), "{closing}");
            }
        }
    }
}

#[test]
fn a_chant_whose_end_must_come_from_the_provider_is_told_of() {
    let chat = "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}";
    let second = r#"{"choices":[{"index":1,"delta":{"content":"fine"}}]}"#;
    let block = r#"{"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#;
    let item = r#"{"type":"response.output_item.added","output_index":7,"item":{"id":"f","type":"function_call","call_id":"c","name":"f","arguments":""}}"#;
    let part = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}],"role":"model"},"index":0}]}"#;
    for (dialect, before) in [
        (Dialect::Chat, chat),
        (Dialect::Chat, second),
        (Dialect::Anthropic, block),
        (Dialect::Responses, item),
        (Dialect::Gemini, part),
    ] {
        let stream = behind(dialect, &events(&[before]));
        let mut reader = StreamReader::new(dialect, true);
        let found = reader.feed(stream.as_bytes()).unwrap();
        assert!(!found.can_end && found.chant.copies >= 5, "{dialect}: {before}");
        reader.go_on(&stream.as_bytes()[found.keep..]);
        let mut deaf = StreamReader::new(dialect, false);
        deaf.feed(stream.as_bytes());
        assert_eq!(reader.finish(), deaf.finish(), "{dialect}: {before}");
    }
}

#[test]
fn words_between_one_call_and_the_next_are_a_text_of_their_own() {
    for dialect in Dialect::ALL {
        for call in ended_calls(dialect) {
            let said = match dialect {
                Dialect::Chat => String::new(),
                Dialect::Anthropic => events(&[
                    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Let me look for more information on that."}}"#,
                    r#"{"type":"content_block_stop","index":1}"#,
                ]),
                Dialect::Responses => events(&[
                    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"m","type":"message","content":[]}}"#,
                    r#"{"type":"response.content_part.added","content_index":0,"part":{"type":"output_text","text":""}}"#,
                    r#"{"type":"response.output_text.delta","content_index":0,"delta":"Let me look for more information on that."}"#,
                    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"m","type":"message","content":[]}}"#,
                ]),
                Dialect::Gemini => events(&[
                    r#"{"candidates":[{"content":{"parts":[{"text":"Let me look for more information on that."}],"role":"model"},"index":0}]}"#,
                ]),
            };
            let mut reader = StreamReader::new(dialect, true);
            assert_eq!(reader.feed([said, call].concat().repeat(30).as_bytes()), None, "{dialect}");
        }
    }
}

#[test]
fn after_a_cut_nothing_is_read_any_more() {
    let stream = chant_stream(Dialect::Chat);
    let mut reader = StreamReader::new(Dialect::Chat, true);
    let cut = reader.feed(stream.as_bytes()).unwrap();
    assert_eq!(reader.feed(stream.as_bytes()), None);
    let closing = reader.closing();
    let mut passed = StreamReader::new(Dialect::Chat, false);
    passed.feed(&stream.as_bytes()[..cut.keep]);
    assert_eq!(reader.finish().text, passed.finish().text);
    assert!(closing.ends_with(b"data: [DONE]\n\n"));
}
