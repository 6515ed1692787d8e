//! Calls that wait: they let time pass, or look at something that runs already.

use crate::args::fields;

/// Whether a call only looks at something that runs already: it names a terminal or a process and gives it nothing to
/// do, or sends no keys at all. What runs there may be at it for a while.
pub(crate) fn watches_what_runs(tool: &str, is_shell: bool, writes: bool, canonical: &[u8]) -> bool {
    let (mut names_it, mut sends_nothing) = (false, false);
    for (name, value) in fields(canonical) {
        let is_given = !matches!(value, b"\"\"" | b"null");
        match name {
            b"id" => names_it = true,
            name if is_handle(name) => names_it = true,
            b"chars" | b"keys" | b"keystrokes" | b"stdin" if !is_given => sends_nothing = true,
            b"input" | b"text" if !is_given => {}
            b"chars" | b"keys" | b"keystrokes" | b"stdin" | b"input" | b"text" | b"command" | b"cmd"
            | b"commands" | b"script" | b"action" | b"code" | b"signal" => return false,
            _ => {}
        }
    }
    let is_output = || is_shell || (!writes && says(tool, "output"));
    let ends_it = || ["kill", "stop", "close", "terminat", "interrupt"].iter().any(|word| says(tool, word));
    sends_nothing || (names_it && is_output() && !ends_it())
}

/// Whether a field of a call names something that runs already, so that what the call asks for is not started by it.
pub(crate) fn names_what_runs(field: &[u8]) -> bool {
    is_handle(field) || matches!(field, b"session" | b"sessionId" | b"processId")
}

fn is_handle(name: &[u8]) -> bool {
    matches!(
        name,
        b"pid" | b"bash_id" | b"shell_id" | b"session_id" | b"terminal_id" | b"process_id" | b"task_id"
    )
}

/// Whether all that a call says is how long. What it answers is said of itself: that the time is over.
pub(crate) fn only_lets_time_pass(canonical: &[u8]) -> bool {
    let is_number = |value: &[u8]| value.first().is_some_and(u8::is_ascii_digit);
    let is_time = |name: &[u8]| {
        matches!(
            name,
            b"seconds" | b"secs" | b"sec" | b"minutes" | b"ms" | b"milliseconds" | b"duration" | b"time"
        )
    };
    let mut said = fields(canonical).map(|(name, value)| is_time(name) && is_number(value)).peekable();
    is_number(canonical) || (said.peek().is_some() && said.all(|is_time| is_time))
}

/// Whether a part of a tool's name stands in it, however it is written.
fn says(tool: &str, part: &str) -> bool {
    tool.as_bytes().windows(part.len()).any(|word| word.eq_ignore_ascii_case(part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::only_lets_time_pass;
    use crate::config::{Effect, RedundancyConfig};
    use crate::effect::effect_of_call;

    #[track_caller]
    fn waits(tool: &str, args: &str, expected: bool) {
        let effect = effect_of_call(tool, Some(args), &RedundancyConfig::default());
        assert_eq!(effect == Some(Effect::Poll), expected, "{tool} {args}");
    }

    #[test]
    fn who_names_a_terminal_and_tells_it_nothing_looks_what_it_does() {
        waits("BashOutput", r#"{"bash_id":"b1"}"#, true);
        waits("get_terminal_output", r#"{"id":"1"}"#, true);
        waits("shell_wait", r#"{"id":"main","seconds":30}"#, true);
        waits("get_process_output", r#"{"pid":912}"#, true);
        waits("write_stdin", r#"{"session_id":3,"chars":""}"#, true);
        waits("send_keystrokes", r#"{"keystrokes":"","timeout_sec":60}"#, true);
    }

    #[test]
    fn who_tells_it_something_or_ends_it_does_not_wait() {
        waits("shell_exec", r#"{"id":"main","command":"make"}"#, false);
        waits("KillBash", r#"{"shell_id":"b1"}"#, false);
        waits("write_stdin", r#"{"session_id":3,"chars":"q"}"#, false);
        waits("fill_field", r#"{"id":"name","text":""}"#, false);
        waits("select_output", r#"{"id":"hdmi"}"#, false);
        waits("get_order", r#"{"id":"7"}"#, false);
    }

    #[test]
    fn how_long_is_all_that_a_wait_says() {
        assert!(only_lets_time_pass(br#"{"seconds":60}"#));
        assert!(only_lets_time_pass(b"60"));
        assert!(!only_lets_time_pass(br#"{"job":7,"seconds":60}"#));
        assert!(!only_lets_time_pass(b"{}"));
    }
}
