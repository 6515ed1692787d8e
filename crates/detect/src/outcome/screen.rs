//! What a command has answered, on a screen that shows what was typed before it, too.
//!
//! Whoever looks at a terminal sees what has scrolled by: old commands, and old errors. The answer to the last command
//! stands behind the line in which it was typed.

/// A longer prompt is none.
const PROMPT: usize = 100;
/// A longer line that was typed is compared as far as this.
const TYPED: usize = 2_000;
/// Nobody types more than this, and no screen goes back further.
const LONGEST: usize = 16 * 1024;
const SCREEN: usize = 64 * 1024;
/// So many lines that look like typed ones are compared with what was asked for, from the last one on.
const LOOKED_AT: usize = 64;
/// What has marks in it that are written in another way in arguments is compared up to the first of them, if so much is left.
const ENOUGH: usize = 4;

/// What stands behind the last line in which this was typed at a prompt, without the prompt at the end; all of the result
/// where there is no such line, or where something else than a screen stands before it: that tells of the call, too.
pub(super) fn answer_on_screen<'a>(result: &'a str, args: &str) -> &'a str {
    let (screen, args) = (result.as_bytes(), args.as_bytes());
    if args.len() > LONGEST {
        return result;
    }
    let mut prompts = Prompts { screen, until: screen.len() }.take(LOOKED_AT);
    let Some(last) = prompts.find(|line| is_asked_for(&screen[line.typed..line.end], args)) else {
        return result;
    };
    let begins = || screen[..last.start].trim_ascii().is_empty();
    if begins() || prompts.next().is_some() { without_prompt(&result[last.end..]) } else { result }
}

/// A line in which something was typed at a prompt: `root@box:/app# ls`, `bash-5.1$ ls`, `$ ls`, `>>> f()`.
struct TypedLine {
    start: usize,
    /// Where the prompt ends.
    typed: usize,
    end: usize,
}

/// Such lines, from the last one on.
struct Prompts<'a> {
    screen: &'a [u8],
    until: usize,
}

impl Iterator for Prompts<'_> {
    type Item = TypedLine;

    fn next(&mut self) -> Option<TypedLine> {
        let top = self.screen.len().saturating_sub(SCREEN);
        loop {
            let sign = top + memchr::memrchr3(b'$', b'#', b'>', self.screen.get(top..self.until)?)?;
            self.until = sign;
            if let Some(line) = typed_line(self.screen, sign) {
                return Some(line);
            }
        }
    }
}

/// The line of which this sign ends the prompt.
fn typed_line(screen: &[u8], sign: usize) -> Option<TypedLine> {
    if screen.get(sign + 1) != Some(&b' ') {
        return None;
    }
    let near = sign.saturating_sub(PROMPT);
    let start = match memchr::memrchr(b'\n', &screen[near..sign]) {
        Some(newline) => near + newline + 1,
        None if near == 0 => 0,
        None => return None,
    };
    // A heading and a comment have nothing before their sign, or a space.
    let is_prompt = match &screen[start..sign] {
        [] => screen[sign] == b'$',
        [.., last] => !last.is_ascii_whitespace(),
    };
    let end = memchr::memchr(b'\n', &screen[sign..]).map_or(screen.len(), |newline| sign + newline);
    let typed = end - screen[sign + 1..end].trim_ascii_start().len();
    (is_prompt && typed < end).then_some(TypedLine { start, typed, end })
}

/// Whether a line stands in the arguments as one of theirs: from the start of a text, or of a line in it, to its end. What is
/// wider than the screen was goes on there.
fn is_asked_for(line: &[u8], args: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let line = &line[..line.len().min(TYPED)];
    let plain = memchr::memchr2(b'"', b'\\', line).map_or(line, |mark| &line[..mark]);
    let is_whole = plain.len() == line.len();
    if plain.is_empty() || (!is_whole && plain.len() < ENOUGH) {
        return false;
    }
    memchr::memmem::find_iter(args, plain).any(|at| {
        let begins = matches!(&args[..at], [.., b'"'] | [.., b'\\', b'n'] | []);
        let ends = matches!(args.get(at + plain.len()), Some(b'"' | b'\\') | None);
        begins && (ends || !is_whole || plain.len() >= WIDE)
    })
}

/// A screen is at least so wide.
const WIDE: usize = 40;

/// An answer without the prompt that waits behind it.
fn without_prompt(answer: &str) -> &str {
    let end = answer.trim_end();
    let (before, last) = end.rsplit_once('\n').unwrap_or(("", end));
    if last.ends_with(['$', '#', '>']) && !last.contains(' ') { before } else { end }
}

#[cfg(test)]
mod tests {
    use super::answer_on_screen;

    #[track_caller]
    fn shows(screen: &str, args: &str, answer: &str) {
        assert_eq!(answer_on_screen(screen, args).trim(), answer);
    }

    const SCREEN: &str = "root@box:/app# cat a\nno such file\nroot@box:/app# ls\na b\nroot@box:/app#";

    #[test]
    fn what_stands_behind_the_last_command_is_its_answer() {
        shows(SCREEN, r#"{"command":"ls"}"#, "a b");
        shows(SCREEN, r#"{"keystrokes":"ls\n","wait":1}"#, "a b");
        shows(SCREEN, r#""{\"cmd\":\"ls\"}""#, "a b");
        shows("$ ls\n", r#""ls""#, "");
        shows(">>> print(\"x\")\nx\n>>>", r#"{"code":"print(\"x\")"}"#, "x");
    }

    #[test]
    fn a_command_that_stands_on_no_screen_leaves_all_of_it() {
        for args in [r#"{"command":"l"}"#, r#"{"command":"ls -l"}"#, r#"{"command":"tools"}"#, "{}", ""] {
            shows(SCREEN, args, SCREEN);
        }
    }

    #[test]
    fn what_stands_before_a_command_that_is_shown_once_is_part_of_the_answer() {
        let shown = "Exit code: 1\nOutput:\n$ ls\nno such folder";
        shows(shown, r#"{"command":"ls"}"#, shown);
        shows("\n$ ls\nno such folder", r#"{"command":"ls"}"#, "no such folder");
    }

    #[test]
    fn what_is_no_prompt_is_none() {
        for text in
            ["# ls\na b", "12:  # ls\na b", "1 > ls\na b", "-> x > ls\na b", "a$ls\na b", "$ \nls", "#"]
        {
            shows(text, r#"{"command":"ls"}"#, text);
        }
        let far = format!("{}$ ls\na b", "x".repeat(200));
        shows(&far, r#"{"command":"ls"}"#, &far);
    }

    #[test]
    fn a_command_that_is_wider_than_the_screen_goes_on() {
        let long = "grep -rn something_that_is_looked_for --include=x .";
        shows(
            &format!("$ {}\nde=x .\nfound\n$", &long[..45]),
            &format!("{{\"command\":{long:?}}}"),
            "de=x .\nfound",
        );
    }
}
