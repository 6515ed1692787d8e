//! What tools of the providers' own look like, in requests and in answers.

use loopbreaker::Step;
use loopbreaker_dialect::{Conversation, Dialect, StreamReader, Usage, read_answer};

use crate::bodies::{digests, steps};

fn items(items: &str) -> String {
    steps(Dialect::Responses, format!(r#"{{"input":[{items}]}}"#).as_bytes())
}

fn contents(parts: &str) -> String {
    let body = format!(r#"{{"contents":[{{"role":"model","parts":[{parts}]}}]}}"#);
    steps(Dialect::Gemini, body.as_bytes())
}

#[test]
fn what_a_tool_of_openai_is_given_is_read_under_whatever_name_it_has() {
    for (kind, given) in [
        ("function_call", r#""arguments":"a""#),
        ("custom_tool_call", r#""input":"a""#),
        ("local_shell_call", r#""action":"a""#),
        ("shell_call", r#""action":"a","environment":{"type":"local"}"#),
        ("computer_call", r#""pending_safety_checks":[],"action":null,"actions":"a""#),
        ("apply_patch_call", r#""operation":"a""#),
        ("program", r#""code":"a","fingerprint":"f""#),
        ("a_call_that_nobody_knows_call", r#""caller":{"type":"direct"},"wish":"a""#),
    ] {
        let call = format!(r#"{{"type":"{kind}","id":"i","call_id":"c","status":"completed",{given}}}"#);
        let read = items(&call);
        assert!(read.contains("| args=a\n"), "{kind}: {read}");

        let body = format!(r#"{{"id":"r","output":[{call}]}}"#);
        let answer = read_answer(Dialect::Responses, body.as_bytes()).unwrap();
        assert_eq!((answer.calls[0].id.as_str(), answer.calls[0].args.as_str()), ("c", "a"), "{kind}");
        assert!(read.contains(&format!("tool={}", answer.calls[0].tool)), "{kind}: {read}");
    }
}

#[test]
fn tools_that_run_at_openai_bring_what_they_were_given_and_what_came_of_it() {
    for (call, expected) in [
        (r#""code_interpreter_call","code":"1+1","container_id":"c","outputs":"2""#, "args=1+1 | result=2"),
        (
            r#""file_search_call","queries":["a"],"results":[{"text":"b"}]"#,
            r#"args=["a"] | result=[{"text":"b"}]"#,
        ),
        (
            r#""image_generation_call","action":"generate","revised_prompt":"a cat","result":"AAAA""#,
            "args=a cat | result=AAAA",
        ),
        (r#""mcp_call","name":"f","arguments":"{}","output":"b","error":null"#, "args={} | result=b"),
        (r#""web_search_call","action":{"query":"a"}"#, r#"args={"query":"a"}"#),
    ] {
        let item = format!(r#"{{"id":"i","type":{call},"status":"completed"}}"#);
        let read = items(&item);
        assert!(read.ends_with(&format!("{expected}\n")), "{read}");

        // An answer says it as well, for a client that will not send it again.
        let answer = read_answer(Dialect::Responses, format!(r#"{{"output":[{item}]}}"#).as_bytes()).unwrap();
        let mut again = String::new();
        let mut tell = |step: &Step<'_>| {
            again = format!("{:?} {:?} {:?}", step.tool.unwrap(), step.args.unwrap(), step.result);
        };
        Conversation::default().take(answer.ran[0].event(), &mut tell);
        for part in expected.split(" | ").filter_map(|part| part.split('=').nth(1)) {
            assert!(again.contains(&format!("{part:?}")), "{again}");
        }
        assert!(answer.calls.is_empty(), "the client runs none of them");
    }
    let failed =
        items(r#"{"id":"i","type":"mcp_call","name":"f","arguments":"{}","output":null,"error":"gone"}"#);
    assert!(failed.ends_with("result=gone | failure\n"), "{failed}");
}

#[test]
fn a_call_whose_result_is_in_the_same_answer_is_not_the_clients() {
    let body = br#"{"output":[
        {"type":"shell_call","id":"i","call_id":"c","action":{"commands":["ls"]}},
        {"type":"shell_call_output","id":"o","call_id":"c","output":[{"stdout":"a.txt","stderr":""}]},
        {"type":"function_call","id":"j","call_id":"d","name":"f","arguments":"{}"}]}"#;
    let answer = read_answer(Dialect::Responses, body).unwrap();
    assert_eq!((answer.calls.len(), answer.calls[0].id.as_str(), answer.ran.len()), (1, "d", 1));
    assert_eq!(answer.ran[0].result.as_deref(), Some(r#"[{"stdout":"a.txt","stderr":""}]"#));
}

#[test]
fn a_call_of_which_nothing_is_said_is_no_step() {
    assert_eq!(items(r#"{"id":"ws_1","type":"web_search_call","status":"completed"}"#), "");
}

#[test]
fn results_under_other_names_belong_to_their_calls() {
    let read = items(
        r#"{"type":"program","call_id":"p","code":"x"},{"type":"program_output","call_id":"p","result":"y","status":"completed"},
        {"type":"tool_search_call","call_id":"t","arguments":{"q":1}},{"type":"tool_search_output","call_id":"t","tools":[7]},
        {"type":"apply_patch_call","call_id":"a","operation":{"path":"b"}},{"type":"apply_patch_call_output","call_id":"a","status":"failed"}"#,
    );
    let lines: Vec<_> = read.lines().collect();
    assert!(lines[0].ends_with("args=x | result=y"), "{read}");
    assert!(lines[1].ends_with(r#"args={"q":1} | result=[7]"#), "{read}");
    assert!(lines[2].ends_with(r#"args={"path":"b"} | result= | failure"#), "{read}");
}

#[test]
fn a_result_that_names_no_call_is_taken_by_none_that_waits_for_its_own() {
    let read = items(
        r#"{"type":"function_call","call_id":"f","name":"f","arguments":"{}"},
        {"type":"tool_search_call","call_id":null,"execution":"server","arguments":{"q":1}},
        {"type":"tool_search_output","call_id":null,"execution":"server","tools":[7]},
        {"type":"function_call_output","call_id":"f","output":"a"}"#,
    );
    assert!(read.contains("tool=f | args={} | result=a\n"), "{read}");
    assert!(read.contains("tool=tool_search | args={\"q\":1}\n"), "{read}");
}

#[test]
fn code_and_tools_that_run_at_gemini_are_calls_with_results() {
    let read = contents(
        r#"{"functionCall":{"name":"f","args":{}}},
        {"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},
        {"executableCode":{"code":"x"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"no x"}},
        {"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{"q":1}}},{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","response":{"r":2}}}"#,
    );
    for expected in [
        "tool=f | args={}\n",
        "tool=code_execution | args=1+1 | result=2\n",
        "tool=code_execution | args=x | result=no x | failure\n",
        "tool=GOOGLE_SEARCH_WEB | args={\"q\":1} | result={\"r\":2}\n",
    ] {
        assert!(read.contains(expected), "{read}");
    }
    let body = br#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"x"}},{"functionCall":{"name":"f"}}]}}]}"#;
    let calls = read_answer(Dialect::Gemini, body).unwrap().calls;
    assert_eq!(
        calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(),
        ["f"],
        "the client runs only this"
    );
}

#[test]
fn a_picture_beside_a_result_of_gemini_is_part_of_it() {
    let result = |data: &str| {
        format!(
            r#"{{"contents":[{{"role":"model","parts":[{{"functionCall":{{"name":"look"}}}}]}},
            {{"role":"user","parts":[{{"functionResponse":{{"name":"look","response":{{"output":"done"}},"parts":[{{"inlineData":{{"data":"{data}"}}}}]}}}}]}}]}}"#
        )
    };
    let (one, other) = (result("AAAA"), result("BBBB"));
    assert!(steps(Dialect::Gemini, one.as_bytes()).contains("result=done\\n[parts "));
    assert_ne!(steps(Dialect::Gemini, one.as_bytes()), steps(Dialect::Gemini, other.as_bytes()));
    assert_ne!(digests(Dialect::Gemini, &one)[1], digests(Dialect::Gemini, &other)[1]);
}

#[test]
fn what_stands_before_a_summary_of_anthropic_is_compacted() {
    let read = |content: &str| {
        let block = format!(r#"{{"type":"compaction","content":{content}}}"#);
        let body = format!(
            r#"{{"messages":[{{"role":"assistant","content":[{block},{{"type":"text","text":"on"}}]}}]}}"#
        );
        steps(Dialect::Anthropic, body.as_bytes())
    };
    assert!(read("\"what was\"").contains("(compaction)"));
    assert!(!read("null").contains("(compaction)"), "that one failed");
}

#[test]
fn a_refusal_is_what_a_model_says() {
    let refusal = |words: &str| {
        format!(r#"{{"messages":[{{"role":"assistant","content":null,"refusal":"{words}"}}]}}"#)
    };
    let read = steps(Dialect::Chat, refusal("no").as_bytes());
    assert!(read.ends_with("thought=no\n"), "{read}");
    assert_ne!(digests(Dialect::Chat, &refusal("no")), digests(Dialect::Chat, &refusal("never")));
}

#[test]
fn what_was_written_to_a_cache_and_what_was_thought_are_counted_apart() {
    let usage = |dialect, body: &str| read_answer(dialect, body.as_bytes()).and_then(|answer| answer.usage);
    let openai = r#"{"output":[],"choices":[],"usage":{"input_tokens":100,"output_tokens":10,
        "input_tokens_details":{"cached_tokens":20,"cache_write_tokens":30}}}"#;
    let expected = Usage { input: 50, cache_read: 20, cache_write: 30, output: 10, ..Usage::default() };
    assert_eq!(usage(Dialect::Responses, openai), Some(expected));
    assert_eq!(usage(Dialect::Chat, openai), Some(expected));
    let anthropic = r#"{"content":[],"usage":{"input_tokens":5,"cache_creation_input_tokens":30,"output_tokens":10,
        "cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens_details":{"thinking_tokens":7}}}"#;
    let expected = Usage {
        input: 5,
        cache_write: 10,
        cache_write_long: 20,
        output: 3,
        reasoning: 7,
        ..Usage::default()
    };
    assert_eq!(usage(Dialect::Anthropic, anthropic), Some(expected));
}

#[test]
fn a_stream_that_has_its_items_only_at_the_end_says_what_it_calls() {
    let response = r#"{"id":"r","status":"completed","model":"m","output":[
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me see."}]},
        {"type":"function_call","id":"i","call_id":"c","name":"ls","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2}}"#
        .replace('\n', " ");
    let stream = format!(
        "data: {{\"type\":\"response.completed\",\"sequence_number\":1,\"response\":{response}}}\n\n"
    );
    let mut reader = StreamReader::new(Dialect::Responses, true);
    reader.feed(stream.as_bytes());
    assert_eq!(reader.finish(), read_answer(Dialect::Responses, response.as_bytes()).unwrap());
}

/// A stream that says these words at its end, after the events before it.
fn ended(before: &str, words: &str) -> StreamReader {
    let output = format!(
        r#"[{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{words}"}}]}}]"#
    );
    let end = format!(
        r#"{{"type":"response.completed","sequence_number":9,"response":{{"id":"r","status":"completed","output":{output}}}}}"#
    );
    let mut reader = StreamReader::new(Dialect::Responses, true);
    let cut = reader.feed(format!("{before}data: {end}\n\n").as_bytes());
    assert!(cut.is_none_or(|cut| !cut.can_end), "a second end would follow the first");
    reader
}

#[test]
fn a_stream_that_says_all_at_its_end_gets_no_second_end() {
    ended("", &"I will look at the file again. ".repeat(200));
}

#[test]
fn words_that_came_by_themselves_are_not_heard_again_at_the_end() {
    let delta = r#"data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hello.","sequence_number":1}"#;
    let answer = ended(&format!("{delta}\n\n"), "Hello.").finish();
    assert_eq!(answer.text, "Hello.");
}
