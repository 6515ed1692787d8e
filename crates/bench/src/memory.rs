//! What a million sessions hold, as the operating system sees it.

use std::hint::black_box;
use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;

use loopbreaker::{DetectorsConfig, Guard, Sentinel, SentinelConfig};
use serde_json::Value;
use tool_loop_break::LoopDetector;
use tool_loop_guard::LoopGuard;

/// The number of sessions that the floor is about.
pub const MILLION: usize = 1_000_000;

/// Who holds sessions, and how many of them are filled; peers are heavier, so fewer stand for many.
pub const HOLDERS: &[(&str, usize)] = &[
    ("guard", MILLION),
    ("sentinel", MILLION),
    ("tool-loop-guard", MILLION / 20),
    ("tool-loop-break", MILLION / 20),
];

const TOOL: &str = "read_file";
const WINDOW: usize = 10;

/// Bytes that so many sessions take, in a process of their own.
pub fn measure(who: &str, sessions: usize) -> io::Result<f64> {
    let output =
        Command::new(std::env::current_exe()?).args(["hold", who, &sessions.to_string()]).output()?;
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .map_err(|_| io::Error::other(format!("{who}: {}", String::from_utf8_lossy(&output.stderr))))
}

/// Fills the sessions and writes how many bytes the process has grown by.
///
/// # Panics
///
/// When a call is blocked, which would leave a window half empty.
pub fn hold(who: &str, sessions: usize, out: &mut impl Write) -> io::Result<()> {
    let calls: Vec<String> = (0..WINDOW).map(|call| format!(r#"{{"path":"src/{call}.rs"}}"#)).collect();
    let before = resident()?;
    match who {
        "guard" => {
            // Shards differ in size, so a limit of exactly a million would forget some sessions.
            let guard = Guard::with_max_sessions(&DetectorsConfig::default(), sessions * 2);
            for index in 0..sessions {
                let session = guard.session(&format!("session-{index}"));
                for call in &calls {
                    assert!(session.check(TOOL, Some(call)).allowed);
                }
            }
            if guard.sessions() != sessions {
                return Err(io::Error::other("some sessions were forgotten"));
            }
            answer(before, guard, out)
        }
        "sentinel" => {
            let config = Arc::new(SentinelConfig::default());
            let fill = |_| {
                let mut sentinel = Sentinel::shared(Arc::clone(&config));
                for call in &calls {
                    assert!(sentinel.check(TOOL, Some(call)).is_ok());
                }
                sentinel
            };
            answer(before, (0..sessions).map(fill).collect::<Vec<_>>(), out)
        }
        "tool-loop-guard" => {
            let values: Vec<Value> =
                calls.iter().filter_map(|call| serde_json::from_str(call).ok()).collect();
            let fill = |_| {
                let mut guard = LoopGuard::with_capacity(WINDOW, 3);
                for call in &values {
                    assert!(guard.record(TOOL, call).is_ok());
                }
                guard
            };
            answer(before, (0..sessions).map(fill).collect::<Vec<_>>(), out)
        }
        "tool-loop-break" => {
            let fill = |_| {
                let mut detector = LoopDetector::new(WINDOW, 3);
                for call in &calls {
                    assert!(!detector.record(TOOL, call));
                }
                detector
            };
            answer(before, (0..sessions).map(fill).collect::<Vec<_>>(), out)
        }
        _ => Err(io::Error::other(format!("nobody called {who} holds sessions"))),
    }
}

/// Writes by how much the process has grown, while what it grew by is still held.
fn answer<T>(before: usize, held: T, out: &mut impl Write) -> io::Result<()> {
    let held = black_box(held);
    writeln!(out, "{}", resident()?.saturating_sub(before))?;
    drop(held);
    Ok(())
}

fn resident() -> io::Result<usize> {
    resident_of("self")
}

/// A process' resident memory in bytes.
pub(crate) fn resident_of(pid: &str) -> io::Result<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<usize>().ok())
        .ok_or_else(|| io::Error::other("no VmRSS in the status of the process"))?;
    Ok(kilobytes * 1_024)
}
