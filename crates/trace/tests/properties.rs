//! What holds for every input.

mod recorder;

use loopbreaker::{Role, Step};
use loopbreaker_trace::{Format, Options, Problem, Sink, read};
use proptest::prelude::*;
use recorder::record;
use serde_json::{Value, json};

const FIXTURES: [&[u8]; 9] = [
    include_bytes!("fixtures/trace.jsonl"),
    include_bytes!("fixtures/openai-chat.json"),
    include_bytes!("fixtures/openai-responses.json"),
    include_bytes!("fixtures/anthropic.json"),
    include_bytes!("fixtures/claude-code.jsonl"),
    include_bytes!("fixtures/decision-log.ndjson"),
    include_bytes!("fixtures/swe-agent.traj"),
    include_bytes!("fixtures/openhands.json"),
    include_bytes!("fixtures/otlp.json"),
];

/// Reads in every format; the recorder itself refuses steps behind an end and second ends.
fn read_in_every_format(input: &[u8], max_line: usize) {
    for format in Format::ALL.map(Some).into_iter().chain([None]) {
        let (found, summary) = record(input, &Options { format, name: "any", max_line });
        if let Ok(summary) = summary {
            assert_eq!(summary.runs, found.ended.len() as u64, "every run ends once");
            assert_eq!(summary.problems, found.problems.len() as u64);
        }
        let lines = input.split(|byte| *byte == b'\n').count() as u64;
        assert!(
            found.problems.iter().all(|problem| (1..=lines).contains(&problem.line)),
            "{:?}",
            found.problems
        );
    }
}

/// Bytes as they stand in broken JSON: brackets, quotes, escapes, words of the formats, and anything.
fn scraps() -> impl Strategy<Value = Vec<u8>> {
    let scrap = prop_oneof![
        4 => prop::sample::select(vec![
            "{", "}", "[", "]", "\"", ":", ",", "\n", "\r\n", "null", "true", "-1", "1e999", "\\u", "\\ud800", "\0", "\"id\":",
            "\"steps\":[", "\"messages\":[", "\"role\":\"user\"", "\"content\":", "\"type\":\"tool_use\"", "\"action\":",
            "\"trajectory\":[", "\"history\":[", "\"resourceSpans\":[", "\"meta\":{", "\"message\":{", "\"sessionId\":\"s\"",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(scrap, 0..60).prop_map(|scraps| scraps.concat())
}

/// Any JSON value under the names that the formats know, so that wrong types turn up everywhere.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "user", "assistant", "tool", "tool_use", "tool_result", "function_call", "run", "x", ""
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let name = prop::sample::select(vec![
            "id",
            "steps",
            "messages",
            "role",
            "content",
            "type",
            "tool_calls",
            "function",
            "name",
            "arguments",
            "action",
            "observation",
            "args",
            "thought",
            "cause",
            "extras",
            "history",
            "trajectory",
            "resourceSpans",
            "scopeSpans",
            "spans",
            "attributes",
            "key",
            "value",
            "meta",
            "trace_id",
            "parent_step_id",
            "cognition",
            "intent",
            "control",
            "message",
            "sessionId",
            "usage",
            "text",
            "input",
            "output",
            "tool_use_id",
            "call_id",
            "tool_call_id",
            "time",
            "tokens",
            "result",
            "status",
            "round",
            "state_delta",
            "cumulative_session_cost",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

#[derive(Debug, Clone, PartialEq)]
struct Plain {
    round: Option<u64>,
    role: String,
    thought: Option<String>,
    tool: Option<String>,
    args: Option<Value>,
    result: Option<String>,
    tokens: Option<u64>,
}

fn step() -> impl Strategy<Value = Plain> {
    let words = || prop::option::of(any::<String>());
    let role = prop_oneof![Just("assistant".to_owned()), Just("user".to_owned()), "[A-Z][a-z]{0,8}"];
    let args = prop::option::of(prop_oneof![
        any::<String>().prop_map(Value::from),
        prop::collection::btree_map(any::<String>(), any::<i64>(), 0..4).prop_map(|map| json!(map)),
    ]);
    let tool = prop::option::of("[a-z_]{1,12}");
    (prop::option::of(0..1_000_u64), role, words(), tool, args, words(), prop::option::of(0..1_000_000_u64))
        .prop_map(|(round, role, thought, tool, args, result, tokens)| Plain {
            round,
            role,
            thought,
            tool,
            args,
            result,
            tokens,
        })
}

fn written(id: &str, steps: &[Plain]) -> String {
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            json!({"round": step.round, "role": step.role, "thought": step.thought, "tool": step.tool,
                   "args": step.args, "result": step.result, "tokens": step.tokens})
        })
        .collect();
    json!({"id": id, "steps": steps}).to_string()
}

/// The runs that were read, and the steps of the run that is being read.
#[derive(Default)]
struct Back {
    runs: Vec<(String, Vec<Plain>)>,
    steps: Vec<Plain>,
}

impl Sink for Back {
    fn step(&mut self, _run: &str, step: &Step<'_>) {
        let role = match step.role {
            Role::Agent(name) => name,
            Role::Outside => "user",
            Role::Compaction => "compaction",
        };
        self.steps.push(Plain {
            round: step.round,
            role: role.to_owned(),
            thought: step.thought.map(str::to_owned),
            tool: step.tool.map(str::to_owned),
            args: step.args.and_then(|args| serde_json::from_str(args).ok()),
            result: step.result.map(str::to_owned),
            tokens: step.tokens,
        });
    }

    fn end(&mut self, run: &str) {
        self.runs.push((run.to_owned(), std::mem::take(&mut self.steps)));
    }

    fn problem(&mut self, _problem: Problem) {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_panic(input in prop::collection::vec(any::<u8>(), 0..300)) {
        read_in_every_format(&input, 100);
    }

    #[test]
    fn no_scraps_of_json_make_a_reader_panic(input in scraps()) {
        read_in_every_format(&input, 1_000);
    }

    #[test]
    fn no_value_of_a_wrong_type_makes_a_reader_panic(values in prop::collection::vec(value(), 1..4)) {
        let lines: Vec<_> = values.iter().map(Value::to_string).collect();
        read_in_every_format(lines.join("\n").as_bytes(), 100_000);
        let pretty: Vec<_> = values.iter().map(|value| serde_json::to_string_pretty(value).unwrap()).collect();
        read_in_every_format(pretty.join("\n").as_bytes(), 100_000);
    }

    #[test]
    fn no_damage_to_a_recording_makes_a_reader_panic(
        fixture in prop::sample::select(FIXTURES.to_vec()),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, prop::collection::vec(any::<u8>(), 0..3)), 1..4),
    ) {
        let mut input = fixture.to_vec();
        for (at, length, put) in cuts {
            let at = at.index(input.len() + 1);
            let end = (at + length).min(input.len());
            input.splice(at..end, put);
        }
        read_in_every_format(&input, 100_000);
    }

    #[test]
    fn a_run_that_is_written_is_read_back(runs in prop::collection::vec(prop::collection::vec(step(), 0..6), 1..4)) {
        let runs: Vec<_> = runs.into_iter().enumerate().map(|(at, steps)| (format!("run-{at}"), steps)).collect();
        let lines: Vec<_> = runs.iter().map(|(id, steps)| written(id, steps)).collect();
        let mut back = Back::default();
        let summary = read(lines.join("\n").as_bytes(), &Options::named("x"), &mut back).unwrap();
        prop_assert_eq!(summary.problems, 0);
        prop_assert_eq!(back.runs, runs);
    }

    #[test]
    fn broken_lines_have_their_own_numbers_and_the_others_are_read(
        lines in prop::collection::vec(prop::sample::select(vec![
            r#"{"id":"r","steps":[{"tool":"a"}]}"#, "", "  ", r#"{"id":"r","steps":[{"tool":"#, "oops",
            r#"{"id":"r","steps":[{"tool":1}]}"#, r#"{"id":"r"}"#, r#"{"id":"r","steps":[{"tool":"a"}]} x"#,
        ]), 0..20),
    ) {
        // A first line that is whole says that there is one value per line.
        let mut lines = lines;
        lines.insert(0, r#"{"id":"first","steps":[]}"#);
        let (found, summary) = record(lines.join("\n").as_bytes(), &Options::named("x"));
        let is_good = |line: &&str| line.ends_with("]}") && !line.contains(":1}");
        let bad: Vec<_> = (1..).zip(&lines).filter(|(_, line)| !line.trim().is_empty() && !is_good(line)).map(|(at, _)| at).collect();
        prop_assert_eq!(found.problems.iter().map(|problem| problem.line).collect::<Vec<u64>>(), bad);
        prop_assert_eq!(summary.unwrap().runs, lines.iter().filter(|line| is_good(line)).count() as u64);
    }
}

#[test]
fn nesting_of_any_depth_is_a_problem_at_most() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_objects = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for deep in [deep, deep_objects] {
        for shape in [
            "DEEP",
            r#"{"id":"r","steps":[{"tool":"a","args":DEEP,"result":DEEP,"tokens":DEEP,"time":DEEP,"x":DEEP}],"y":DEEP}"#,
            r#"{"steps":DEEP}"#,
            r#"{"messages":DEEP,"id":DEEP}"#,
            r#"{"messages":[{"role":"assistant","content":DEEP,"tool_calls":DEEP,"function_call":DEEP}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","content":DEEP},DEEP]}]}"#,
            r#"{"type":"user","sessionId":"s","message":DEEP,"toolUseResult":DEEP}"#,
            r#"{"type":"user","sessionId":"s","message":{"content":DEEP,"usage":DEEP}}"#,
            r#"{"meta":DEEP,"cognition":{"intent":"x"},"action":{"tool_input":DEEP},"extra":DEEP}"#,
            r#"{"trajectory":[{"action":"ls","observation":DEEP,"query":DEEP}],"history":DEEP}"#,
            r#"{"history":DEEP}"#,
            r#"{"id":1,"source":"agent","action":"run","args":DEEP,"extras":DEEP}"#,
            r#"{"observation":"run","cause":DEEP,"content":DEEP,"extras":{"metadata":DEEP}}"#,
            r#"{"resourceSpans":DEEP}"#,
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.output.messages","value":{"kvlistValue":DEEP}}],"status":DEEP}]}]}]}"#,
        ] {
            read_in_every_format(shape.replace("DEEP", &deep).as_bytes(), 10_000_000);
        }
    }
}
