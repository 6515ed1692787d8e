//! What is told stays within what may be told.

use serde_json::Value;

use crate::lab::{Bench, Lab, until};
use crate::talk::{Chat, looping};

const SECRETS: [&str; 6] = [
    "sk-proj-AAAABBBBCCCCDDDDEEEE",
    "sk-ant-api03-FFFFGGGGHHHHIIII",
    "AIzaSyJJJJKKKKLLLLMMMMNNNN",
    "AIzaSyOOOOPPPPQQQQRRRRSSSS",
    "my-very-private-question",
    "ghp_TTTTUUUUVVVVWWWWXXXXYYYYZZZZ01234567",
];

/// Sends every secret in every place where clients have them, with good and bad endings.
fn speak(lab: &Lab) -> usize {
    let [openai, anthropic, goog, in_query, words, in_name] = SECRETS;
    let bearer = format!("Bearer {openai}");
    let body = Chat::new(words).call(&format!("curl -H 'x: {in_name}'"), in_name).body();
    let mut count = 0;
    let mut post = |path: &str, headers: &[(&str, &str)], body: &str| {
        lab.post(path, headers, body);
        count += 1;
    };
    post("/v1/chat/completions", &[("authorization", &bearer)], &body);
    post("/v1/chat/completions", &[("authorization", &bearer)], &format!("broken {words}"));
    post("/v1/messages", &[("x-api-key", anthropic)], &format!(r#"{{"system":"{words}","messages":[]}}"#));
    post(
        &format!("/v1beta/models/g:generateContent?key={in_query}"),
        &[],
        &format!(r#"{{"contents":"{words}"}}"#),
    );
    post("/v1beta/models/g:generateContent", &[("x-goog-api-key", goog)], "{}");
    post(&format!("/v1/files?key={in_query}"), &[], words);
    post(
        "/v1/responses",
        &[("authorization", &bearer), ("x-session-id", in_name)],
        &format!(r#"{{"input":"{words}"}}"#),
    );
    post("/v1/chat/completions", &[("x-agent-id", in_name), ("x-tenant-id", in_name)], "{}");
    post("/v1/chat/completions", &[], &format!(r#"{{"model":"{in_name}","messages":[]}}"#));
    for times in 3..=7 {
        post("/v1/chat/completions", &[("authorization", &bearer)], &looping(words, times));
    }
    lab.post(&format!("/nowhere/{in_query}?key={in_query}"), &[("authorization", &bearer)], words);
    count
}

/// The log, once it has so many lines of requests.
fn whole_log(lab: &Lab, count: usize, mark: &str) -> String {
    until("everything is logged", || lab.log().matches(mark).count() >= count);
    lab.log()
}

#[test]
fn no_credential_and_no_prompt_is_ever_logged() {
    for (format, mark) in [("json", "\"event\":\"request\""), ("human", " tenant=")] {
        let lab = Bench::new().arg("--log-format").arg(format).start();
        let count = speak(&lab);
        let log = whole_log(&lab, count, mark);
        for secret in SECRETS {
            assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
        }
        assert!(!log.to_lowercase().contains("bearer"), "{log}");
        assert!(!log.contains("key="), "{log}");
    }
}

#[test]
fn no_credential_and_no_prompt_is_logged_when_the_provider_is_away() {
    let lab = Bench::new().upstream("http://127.0.0.1:1").start();
    let count = speak(&lab);
    let log = whole_log(&lab, count, "\"event\":\"request\"");
    for secret in SECRETS {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
}

#[test]
fn metrics_and_readiness_tell_of_nobody() {
    let lab = Lab::new();
    speak(&lab);
    for path in ["/metrics", "/readyz"] {
        let text = lab.get(path).text();
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} is in {path}");
        }
        assert!(!text.contains("gpt-4o"), "labels are bounded: {path}");
    }
}

#[test]
fn nothing_is_written_into_the_data_folder_that_is_not_ours_where_prompts_are_not_kept() {
    let lab = Lab::with("log: { keep_prompts: false }");
    let count = speak(&lab);
    whole_log(&lab, count, "\"event\":\"request\"");
    for entry in std::fs::read_dir(lab.path("data")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let found: Vec<_> = SECRETS.iter().filter(|secret| text.contains(**secret)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

/// Bodies that name sessions and models which would forge lines or headers.
fn forgeries() -> Vec<String> {
    let names = [
        "a\r\nx-evil: 1",
        "a\n{\"event\":\"request\",\"tenant\":\"forged\"}",
        "\u{1b}[31mred\u{1b}[0m",
        "\u{2028}\u{85}\u{0}",
        "\"},{\"x\":\"y",
        "é😀 بيانات",
    ];
    names
        .iter()
        .flat_map(|name| {
            let name = serde_json::to_string(name).unwrap();
            [
                format!(r#"{{"model":{name},"messages":[]}}"#),
                format!(r#"{{"model":"m","metadata":{{"session_id":{name}}},"messages":[{{"role":"user","content":{name}}}]}}"#),
            ]
        })
        .collect()
}

#[test]
fn nobody_can_forge_a_line_of_the_log() {
    let lab = Lab::new();
    let bodies = forgeries();
    for body in &bodies {
        lab.chat(&[], body);
    }
    let lines = lab.logged(bodies.len());
    assert_eq!(lines.len(), bodies.len());
    for line in lab.log().lines() {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line:?}"));
        assert_ne!(parsed["tenant"], "forged");
        assert!(line.bytes().all(|byte| byte >= b' '), "{line:?}");
    }
}

#[test]
fn nobody_can_forge_a_line_for_eyes() {
    let lab = Bench::new().arg("--log-format").arg("human").start();
    let bodies = forgeries();
    for body in &bodies {
        lab.chat(&[], body);
    }
    let log = whole_log(&lab, bodies.len(), " tenant=");
    assert_eq!(log.lines().count(), bodies.len(), "{log}");
    assert!(log.lines().flat_map(str::chars).all(|letter| !letter.is_control()), "{log:?}");
}

#[test]
fn nobody_can_forge_a_header_and_every_answer_names_its_session() {
    let lab = Lab::new();
    for body in forgeries() {
        let reply = lab.chat(&[], &body);
        assert_eq!(reply.header("x-evil"), None);
        let session = reply.header("x-loopbreaker-session");
        assert!(session.is_some_and(|name| !name.is_empty()), "{body}: {session:?}");
    }
    let mut wire = lab.wire();
    wire.send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-session-id: a\tb\r\nx-agent-id: \xff\xfe\r\n\r\n");
    assert!(wire.reply().header("x-loopbreaker-session").is_some());
}

#[test]
fn a_name_that_is_a_novel_is_no_name() {
    let lab = Lab::new();
    let long = "x".repeat(5_000);
    let reply = lab.chat(&[("x-session-id", &long), ("x-agent-id", &long), ("x-tenant-id", &long)], "{}");
    assert!(reply.header("x-loopbreaker-session").unwrap().len() < 300);
    let line = &lab.logged(1)[0];
    for name in ["session", "agent", "tenant"] {
        assert!(line[name].as_str().unwrap().len() < 300, "{name}");
    }
}
