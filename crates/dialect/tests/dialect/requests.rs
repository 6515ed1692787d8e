//! Recorded requests, and what is read from them.

use std::fmt::Write as _;

use loopbreaker_dialect::{Dialect, Speaker, Unreadable, read_request};

use crate::bodies::{digests, facts, read, steps};
use crate::golden;

#[test]
fn every_recorded_request_is_read_as_before() {
    for dialect in Dialect::ALL {
        for (name, body) in golden::inputs(dialect, "request") {
            let (reading, messages) = read(dialect, &body, None).unwrap();
            let mut text = facts(&reading.facts);
            for message in &messages {
                let span = String::from_utf8_lossy(&body[message.start..message.end]);
                let beginning: String = span.chars().take(60).collect();
                writeln!(text, "message {:?} {}", message.speaker, beginning.replace('\n', " ")).unwrap();
            }
            text.push_str(&steps(dialect, &body));
            let mark = reading.mark.map(|mark| (mark.offset(), mark.messages()));
            writeln!(text, "mark {mark:?} of {}", body.len()).unwrap();
            golden::check(dialect, &name, &text);
        }
    }
}

#[test]
fn a_string_and_a_single_block_of_the_same_words_are_the_same_message() {
    let same =
        |dialect, one: &str, other: &str| assert_eq!(digests(dialect, one), digests(dialect, other), "{one}");
    same(
        Dialect::Chat,
        r#"{"messages":[{"role":"user","content":"é\n\"x\""}]}"#,
        r#"{"messages":[{"content":[{"text":"\u00e9\u000a\"x\"","type":"text"}],"role":"user"}]}"#,
    );
    same(
        Dialect::Anthropic,
        r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","cache_control":{},"content":[{"type":"text","text":"x"}]}]}]}"#,
    );
    same(
        Dialect::Responses,
        r#"{"input":"hi"}"#,
        r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}"#,
    );
    same(
        Dialect::Gemini,
        r#"{"contents":[{"parts":{"text":"hi"}}]}"#,
        r#"{"contents":[{"role":"user","parts":[{"text":"hi","thoughtSignature":"x"}]}]}"#,
    );
}

#[test]
fn a_result_that_an_sdk_wraps_is_the_text_that_the_tool_gave() {
    let read = |response: &str| {
        let call = r#"{"role":"model","parts":[{"functionCall":{"name":"fetch","args":{}}}]}"#;
        let result = format!(
            r#"{{"role":"user","parts":[{{"functionResponse":{{"name":"fetch","response":{response}}}}}]}}"#
        );
        steps(Dialect::Gemini, format!(r#"{{"contents":[{call},{result}]}}"#).as_bytes())
    };
    let text = read(r#"{"result":"Error: 503"}"#);
    assert!(text.contains("Error: 503") && !text.contains("result\""), "{text}");
    assert_eq!(text, read(r#"{"output":"Error: 503"}"#));
    let more = read(r#"{"result":"Error: 503","code":7}"#);
    assert!(more.contains("code"), "{more}");
}

#[test]
fn what_a_message_says_makes_its_digest() {
    let messages = [
        r#"{"role":"user","content":"a"}"#,
        r#"{"role":"user","content":"b"}"#,
        r#"{"role":"assistant","content":"a"}"#,
        r#"{"role":"system","content":"a"}"#,
        r#"{"role":"user","name":"x","content":"a"}"#,
        r#"{"role":"user","content":["a","b"]}"#,
        r#"{"role":"tool","tool_call_id":"1","content":"a"}"#,
        r#"{"role":"tool","tool_call_id":"1","name":"f","content":"a"}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"g","arguments":"{}"}}]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}}]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"a"}}]}"#,
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"a"}}]}"#,
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"b"}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","content":"a"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","content":"a","is_error":true}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","content":{"a":1}}]}"#,
        "5",
        "6",
    ];
    let mut all = digests(Dialect::Chat, &format!(r#"{{"messages":[{}]}}"#, messages.join(",")));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), messages.len(), "no two of them are the same");
}

#[test]
fn ids_marks_signatures_and_thoughts_do_not_make_a_digest() {
    let one = r#"{"messages":[{"role":"system","content":"x-anthropic-billing-header: cch=1;\nBe brief."},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"a"},{"type":"text","text":"ok"},
        {"type":"tool_use","id":"t1","name":"f","input":{"a":1,"b":2}}]}]}"#;
    let other = r#"{"messages":[{"content":[{"type":"text","text":"x-anthropic-billing-header: cch=2;\nBe brief.","cache_control":{"type":"ephemeral"}}],"role":"system"},
        {"content":[{"text":"ok","type":"text"},
        {"cache_control":{},"type":"tool_use","id":"t2","name":"f","input":{ "b" : 2.0, "a" : 1 }}],"role":"assistant"}]}"#;
    assert_eq!(digests(Dialect::Anthropic, one), digests(Dialect::Anthropic, other));
}

#[test]
fn results_from_tools_are_told_from_words_of_users() {
    let body = r#"{"messages":[
        {"role":"user","content":[{"type":"text","text":"a \"type\":\"tool_result\" is"}]},
        {"role":"user","content":[{"type" : "tool_result","content":"x"},{"type":"text","text":"go on"}]}]}"#;
    let (_, messages) = read(Dialect::Anthropic, body.as_bytes(), None).unwrap();
    let speakers: Vec<_> = messages.iter().map(|message| message.speaker).collect();
    assert_eq!(speakers, [Speaker::Outside, Speaker::Tool]);
}

#[test]
fn of_two_lists_of_messages_the_last_one_counts_and_nothing_goes_on_from_there() {
    let body = br#"{"model":"a","messages":[{"role":"user","content":"1"}],"model":"b","messages":[{"role":"user","content":"2"}]}"#;
    let (reading, messages) = read(Dialect::Chat, body, None).unwrap();
    assert_eq!((reading.messages, reading.facts.model.as_deref()), (1, Some("b")));
    assert!(reading.mark.is_none());
    assert!(messages[0].events[0].contains("\"2\""), "{:?}", messages[0].events);

    let first = br#"{"messages":[{"role":"user","content":"1"}]}"#;
    let mark = read(Dialect::Chat, first, None).unwrap().0.mark.unwrap();
    let second =
        br#"{"messages":[{"role":"user","content":"1"}],"messages":[{"role":"user","content":"2"}]}"#;
    let (reading, messages) = read(Dialect::Chat, second, Some(&mark)).unwrap();
    assert_eq!((reading.messages, messages.len(), reading.mark.is_none()), (1, 1, true));
}

#[test]
fn a_body_that_goes_on_is_read_from_where_the_last_one_ended() {
    let first = br#"{"model":"m","messages":[ {"role":"user","content":"1"} ],"stream":true,"tools":[1]}"#;
    let (reading, _) = read(Dialect::Chat, first, None).unwrap();
    let mark = reading.mark.unwrap();
    assert!(first[..mark.offset()].ends_with(b"\"1\"}"));

    // The beginning is not even looked at: the caller vouches for it.
    let mut second = first.to_vec();
    second.splice(mark.offset()..mark.offset(), br#", {"role":"assistant","content":"2"}"#.iter().copied());
    second[0] = b'?';
    let (reading, messages) = read(Dialect::Chat, &second, Some(&mark)).unwrap();
    assert_eq!((messages.len(), reading.messages), (1, 2));
    assert!(reading.facts.stream && reading.facts.has_tools);
    assert_eq!(reading.facts.model.as_deref(), Some("m"));
    assert_eq!(reading.mark.unwrap().offset(), messages[0].end);
}

#[test]
fn what_is_said_behind_the_messages_is_read_again_when_it_has_changed() {
    let first = br#"{"model":"m","messages":[{"role":"user","content":"1"}],"stream":true,"temperature":1}"#;
    let mark = read(Dialect::Chat, first, None).unwrap().0.mark.unwrap();
    let second = br#"{"model":"m","messages":[{"role":"user","content":"1"}],"temperature":0.5}"#;
    let (reading, messages) = read(Dialect::Chat, second, Some(&mark)).unwrap();
    assert!(messages.is_empty() && !reading.facts.stream);
    assert_eq!((reading.facts.model.as_deref(), reading.facts.temperature), (Some("m"), Some(0.5)));
}

#[test]
fn a_mark_that_does_not_fit_is_not_used() {
    let first = br#"{"messages":[{"role":"user","content":"1"}]}"#;
    let mark = read(Dialect::Chat, first, None).unwrap().0.mark.unwrap();
    for other in [
        &br#"{"messages":[{"role":"user","content":"longer than it was"}]}"#[..],
        br#"{"messages":[]}"#,
        br#"{"messages":[{"role":"user"}]}"#,
    ] {
        let (reading, messages) = read(Dialect::Chat, other, Some(&mark)).unwrap();
        assert_eq!(reading.messages, messages.len());
    }
}

#[test]
fn what_is_no_request_is_an_error_that_says_where() {
    let error = |body: &[u8]| read_request(Dialect::Chat, body, None, &mut |_| ()).unwrap_err();
    assert!(matches!(error(b"{\"messages\":[\"\xff\"]}"), Unreadable::Utf8));
    assert!(matches!(error(br#"{"messages":[{}"#), Unreadable::Json { .. }));
    assert!(matches!(error(br#"{"model":"m","messages":5}"#), Unreadable::NoList { at: 24 }));
    assert!(matches!(error(br#"{"model":tru}"#), Unreadable::Json { at: 9 }));
    assert!(matches!(error(br#"{"model":1} x"#), Unreadable::Json { at: 12 }));
    for body in
        [&b""[..], b"[]", b"null", b"{", b"{\"messages\":", b"{\"messages\":[{},]}", b"{\"messages\":[,{}]}"]
    {
        assert!(error(body).to_string().contains("repair"), "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn a_body_that_cannot_be_read_to_its_end_shows_no_message() {
    let mut seen = 0;
    let body = br#"{"messages":[{"role":"user","content":"1"}],"tools":[}"#;
    assert!(read_request(Dialect::Chat, body, None, &mut |_| seen += 1).is_err());
    assert_eq!(seen, 0);
}

#[test]
fn nesting_of_any_depth_and_messages_without_number_neither_panic_nor_take_long() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_objects = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for deep in [&deep, &deep_objects] {
        for body in [
            deep.clone(),
            format!(r#"{{"messages":{deep},"input":{deep},"contents":{deep}}}"#),
            format!(
                r#"{{"messages":[{{"role":"user","content":{deep},"parts":{deep}}}],"tools":{deep},"system":{deep}}}"#
            ),
            format!(
                r#"{{"messages":[{{"role":"assistant","tool_calls":[{{"function":{{"name":"f","arguments":{deep}}}}}]}}]}}"#
            ),
            format!(
                r#"{{"input":[{{"type":"function_call","call_id":"c","arguments":{deep},"output":{deep}}}]}}"#
            ),
            format!(
                r#"{{"contents":[{{"parts":[{{"functionCall":{{"args":{deep}}}}},{{"functionResponse":{{"response":{deep}}}}}]}}]}}"#
            ),
            format!(
                r#"{{"metadata":{deep},"generationConfig":{deep},"stream_options":{deep},"conversation":{deep}}}"#
            ),
        ] {
            for dialect in Dialect::ALL {
                read(dialect, body.as_bytes(), None);
            }
        }
    }
    let broken = "[".repeat(1 << 20);
    assert!(read(Dialect::Chat, format!("{{\"messages\":{broken}").as_bytes(), None).is_none());
    let many = format!(r#"{{"messages":[{}{{}}]}}"#, "{},".repeat(100_000));
    let error = read_request(Dialect::Chat, many.as_bytes(), None, &mut |_| ()).unwrap_err();
    assert!(matches!(error, Unreadable::TooMany { max: 65_536 }), "{error}");
}
