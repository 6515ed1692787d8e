//! Memory stays flat, however much is read. `scripts/replay-2gb.sh` does the same with 2 GB.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::binary::Desk;

#[test]
fn three_hundred_megabytes_are_read_in_flat_memory() {
    let desk = Desk::new();
    let mut child = desk
        .command(&["replay", "-", "--json", "-q", "--html", "page.html"])
        .stdin(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        stdout.lines().map(Result::unwrap).find(|line| line.starts_with(r#"{"id":"run-last""#)).is_some()
    });

    let mut written = 0;
    for number in 0.. {
        let run = run(&number.to_string());
        stdin.write_all(run.as_bytes()).unwrap();
        written += run.len();
        if written > 300 << 20 {
            break;
        }
    }
    stdin.write_all(run("last").as_bytes()).unwrap();
    stdin.flush().unwrap();
    // Stdin stays open: the process waits for more, so its peak can still be asked for.
    assert!(reader.join().unwrap());
    let peak = peak_kilobytes(child.id());
    drop(stdin);
    child.wait().unwrap();
    assert!(peak < 200 << 10, "peak resident memory was {peak} kB");
}

/// A run of about 1 MB, in which nothing repeats.
fn run(name: &str) -> String {
    let text = "the quick brown fox jumps over the lazy dog ".repeat(90);
    let steps: Vec<_> = (0..250)
        .map(|step| format!(r#"{{"tool":"read","args":{{"page":{step}}},"result":"{name} {step} {text}"}}"#))
        .collect();
    format!("{{\"id\":\"run-{name}\",\"steps\":[{}]}}\n", steps.join(","))
}

fn peak_kilobytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
