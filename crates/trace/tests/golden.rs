//! Small recordings of every format, and the steps that they are.
//!
//! When a change is meant, the new text is in the failure's message: put it into the `.steps` file.

mod recorder;

use loopbreaker_trace::{Error, Format, Options};
use recorder::record;

macro_rules! golden {
    ($($name:ident: $file:literal is $format:ident;)*) => {
        $(
            #[test]
            fn $name() -> Result<(), Error> {
                let input = include_bytes!(concat!("fixtures/", $file));
                let expected = include_str!(concat!("fixtures/", $file, ".steps"));
                compare($file, input, expected, Format::$format)
            }
        )*
    };
}

golden! {
    a_trace_is_read: "trace.jsonl" is Trace;
    broken_lines_are_problems_and_the_others_are_read: "broken.jsonl" is Trace;
    openai_chat_is_read: "openai-chat.json" is OpenAi;
    openai_lines_are_read: "openai-lines.jsonl" is OpenAi;
    openai_single_messages_are_read: "openai-messages.jsonl" is OpenAi;
    openai_responses_items_are_read: "openai-responses.json" is OpenAi;
    gemini_contents_are_read: "gemini.json" is OpenAi;
    anthropic_messages_are_read: "anthropic.json" is Anthropic;
    anthropic_lines_are_read: "anthropic-lines.jsonl" is Anthropic;
    a_claude_code_session_is_read: "claude-code.jsonl" is ClaudeCode;
    decision_logs_are_read: "decision-log.ndjson" is DecisionLog;
    a_swe_agent_trajectory_is_read: "swe-agent.traj" is SweAgent;
    openhands_events_are_read: "openhands.json" is OpenHands;
    openhands_lines_are_read: "openhands-lines.jsonl" is OpenHands;
    otlp_spans_are_read: "otlp.json" is OtlpJson;
}

fn compare(file: &str, input: &[u8], expected: &str, format: Format) -> Result<(), Error> {
    let (found, summary) = record(input, &Options::named("file"));
    let summary = summary?;
    assert_eq!(summary.format, format, "{file} was taken for something else");
    assert_eq!(summary.runs, found.ended.len() as u64, "every run ends once");
    assert_eq!(summary.problems, found.problems.len() as u64);
    assert_eq!(summary.bytes, input.len() as u64);
    assert!(found.text == expected, "{file} gives other steps than before:\n{}", found.text);

    let (given, _) = record(input, &Options { format: Some(format), ..Options::named("file") });
    assert_eq!(given.text, expected, "naming the format changes nothing");

    let windows = String::from_utf8_lossy(input).replace('\n', "\r\n");
    let (marked, _) = record(format!("\u{feff}{windows}").as_bytes(), &Options::named("file"));
    assert_eq!(marked.text, expected, "a byte order mark and other line ends change nothing");
    Ok(())
}

#[test]
fn exported_decision_logs_are_read_like_bare_ones() -> Result<(), Error> {
    let bare = include_str!("fixtures/decision-log.ndjson");
    let lines = bare.lines().map(|line| format!("{{\"tenant\":\"acme\",\"log\":{line}}}\n"));
    let exported = lines.collect::<Vec<_>>().concat();
    let (found, summary) = record(exported.as_bytes(), &Options::named("file"));
    assert_eq!(summary?.format, Format::DecisionLog);
    assert_eq!(found.text, include_str!("fixtures/decision-log.ndjson.steps"));
    Ok(())
}

#[test]
fn an_exported_log_belongs_to_the_session_that_it_was_given() -> Result<(), Error> {
    let line = |trace: &str| {
        let log =
            format!(r#"{{"meta":{{"trace_id":"{trace}"}},"cognition":{{"intent":"look"}},"action":{{}}}}"#);
        format!("{{\"session_id\":\"run-17\",\"tenant\":\"acme\",\"log\":{log}}}\n")
    };
    let (found, summary) = record((line("a") + &line("b")).as_bytes(), &Options::named("file"));
    assert_eq!((summary?.problems, found.ended), (0, vec!["run-17".to_owned()]));
    Ok(())
}
