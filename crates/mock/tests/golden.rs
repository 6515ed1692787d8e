//! The bytes of each dialect, whole and streamed, as files to read and compare. `UPDATE_GOLDEN=1` writes them anew.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::Path;

use loopbreaker_mock::{Mock, Turn, Usage};

/// One raw exchange: the head without what changes from day to day, and the body with its chunks joined.
fn exchange(mock: &Mock, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(mock.addr()).unwrap();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head: Vec<&str> = head.lines().filter(|line| !line.starts_with("date:")).collect();
    let body = if head.contains(&"transfer-encoding: chunked") { joined(body) } else { body.to_owned() };
    format!("{}\n\n{body}", head.join("\n"))
}

fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&rest[..size]);
        chunks = rest[size..].strip_prefix("\r\n").unwrap();
    }
    body
}

fn check(name: &str, exchanges: &[(&str, &str)]) {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    let usage = Usage { input: 100, cache_read: 20, cache_write: 3, output: 40, reasoning: 5 };
    let turn = Turn::text("I look – \"twice\".")
        .reasoning("First the list.")
        .and_call("bash", r#"{"command": "ls -la", "a": 1.0}"#)
        .and_call("read", r#"{"path":"größe.txt"}"#)
        .usage(usage);
    mock.script([turn]);
    let mut all = String::new();
    for (path, body) in exchanges {
        writeln!(all, ">>> POST {path}\n{body}\n\n{}\n", exchange(&mock, path, body)).unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, all).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; run with UPDATE_GOLDEN=1", file.display()));
    assert_eq!(all, golden, "{name} changed; run with UPDATE_GOLDEN=1 if that is wanted");
}

#[test]
fn chat_has_the_bytes_of_its_file() {
    let path = "/v1/chat/completions";
    check(
        "chat.txt",
        &[
            (path, r#"{"model":"gpt-x","messages":[]}"#),
            (
                path,
                r#"{"model":"gpt-x","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                path,
                r#"{"model":"gpt-x","messages":[],"stream":true,"stream_options":{"include_obfuscation":false}}"#,
            ),
            (path, r#"{"model":"gpt-x"}"#),
        ],
    );
}

#[test]
fn responses_have_the_bytes_of_their_file() {
    let path = "/v1/responses";
    check(
        "responses.txt",
        &[
            (
                path,
                r#"{"model":"gpt-x","input":"hi","instructions":"be brief","metadata":{"b":"1","a":"2"}}"#,
            ),
            (path, r#"{"model":"gpt-x","input":[],"stream":true,"previous_response_id":"resp_1"}"#),
            (path, r#"{"input":"hi"}"#),
        ],
    );
}

#[test]
fn anthropic_has_the_bytes_of_its_file() {
    let path = "/v1/messages";
    check(
        "anthropic.txt",
        &[
            (path, r#"{"model":"claude-x","max_tokens":9,"messages":[]}"#),
            (path, r#"{"model":"claude-x","max_tokens":9,"messages":[],"stream":true}"#),
            (path, r#"{"model":"claude-x","max_tokens":9}"#),
        ],
    );
}

#[test]
fn gemini_has_the_bytes_of_its_file() {
    let body = r#"{"contents":[]}"#;
    check(
        "gemini.txt",
        &[
            ("/v1beta/models/gemini-x:generateContent", body),
            ("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", body),
            ("/v1beta/models/gemini-x:streamGenerateContent", body),
            ("/v1beta/models/gemini-x:generateContent", "{}"),
            ("/v1beta/nowhere", body),
        ],
    );
}
