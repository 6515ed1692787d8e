//! What the log costs the calls of the gateway.

use std::io;
use std::time::{Duration, Instant};

use loopbreaker_mock::Mock;
use serde_json::json;

use crate::client::Client;
use crate::program::Program;

/// The slowest call of a hundred, without the log and with it.
pub(crate) struct Calls {
    pub(crate) without_log: Duration,
    pub(crate) with_log: Duration,
}

/// Rounds of each, in turns: a machine that is busy for a moment is so for both.
const ROUNDS: usize = 10;

pub(crate) fn measure(calls: usize) -> io::Result<Calls> {
    let mock = Mock::fixed().start("127.0.0.1:0")?;
    let folders = (tempfile::tempdir()?, tempfile::tempdir()?);
    let without = Program::start(folders.0.path(), Some(mock.addr()), "off")?;
    let with = Program::start(folders.1.path(), Some(mock.addr()), "sqlite")?;
    let (mut plain, mut logged) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for (program, times) in [(&without, &mut plain), (&with, &mut logged)] {
            let mut client = Client::connect(program.address)?;
            for number in 0..calls / ROUNDS {
                let body = request(round * calls + number).to_string();
                let asked = Instant::now();
                let (status, answer) =
                    client.ask("POST", "/v1/chat/completions", "application/json", &body)?;
                if status != 200 {
                    return Err(io::Error::other(format!("{status} {answer}")));
                }
                times.push(asked.elapsed());
            }
        }
    }
    let slowest = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() * 99 / 100).copied().unwrap_or_default()
    };
    Ok(Calls { without_log: slowest(plain), with_log: slowest(logged) })
}

/// A conversation with two calls and their results.
fn request(number: usize) -> serde_json::Value {
    let call = |id: String, command: String| {
        json!({ "id": id, "type": "function", "function": {
            "name": "bash", "arguments": json!({ "command": command }).to_string(),
        } })
    };
    json!({ "model": "gpt-4o", "messages": [
        { "role": "user", "content": format!("repair project {number}") },
        { "role": "assistant", "content": null, "tool_calls": [call(format!("a{number}"), format!("ls {number}"))] },
        { "role": "tool", "tool_call_id": format!("a{number}"), "content": "Makefile src" },
        { "role": "assistant", "content": null, "tool_calls": [call(format!("b{number}"), format!("make {number}"))] },
        { "role": "tool", "tool_call_id": format!("b{number}"), "content": "1 error" },
    ] })
}
