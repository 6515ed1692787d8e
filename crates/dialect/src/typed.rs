//! Calls that a model types in words, and answers to them that come back as words of the user.
//!
//! Agents without an API for tools let the model write down what it wants done: behind `Action:`, in a fenced block, or in a
//! tag. What came of it is sent as the next message of the user, which says so in its first words. Both together are a
//! step like any other; either alone is what it looks like: words.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// A call that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Typed {
    /// How much of the words stands before it.
    pub(crate) thought: usize,
    pub(crate) tool: String,
    /// The arguments as JSON.
    pub(crate) args: String,
}

/// Reads the call that somebody typed, if the words hold one.
pub(crate) fn typed_call(words: &str) -> Option<Typed> {
    behind_a_label(words).or_else(|| in_a_fence(words)).or_else(|| in_a_tag(words))
}

/// Whether words from outside are what came of a call: they say so first of all, in a tag (`<output>`) or in a few words
/// before a colon (`Observation:`, `[execute_command for 'ls'] Result:`).
pub(crate) fn is_outcome(words: &str) -> bool {
    let first = words.trim_start().lines().next().unwrap_or_default();
    let is_told = |text: &str, most: usize| {
        let mut words =
            text.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        text.len() <= LONGEST_LABEL
            && words.clone().count() <= most
            && words.any(|word| is_one_of(word, OUTCOMES))
    };
    if let Some((tag, _)) = first.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        return is_told(tag.split_ascii_whitespace().next().unwrap_or_default(), MOST_WORDS);
    }
    let behind =
        first.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(first, |(_, behind)| behind);
    behind.split_once(':').is_some_and(|(label, _)| is_told(label, MOST_WORDS))
}

/// What an outcome is called.
const OUTCOMES: &[&str] =
    &["observation", "output", "result", "results", "returncode", "stdout", "stderr", "response", "exit"];

/// More words, or longer ones, before a colon are a sentence.
const MOST_WORDS: usize = 4;
const LONGEST_LABEL: usize = 60;

/// `Action: search` and `Action Input: …` in the next line, or `Action: search[…]`.
fn behind_a_label(words: &str) -> Option<Typed> {
    let mut rest = words;
    while let Some((thought, tool, behind)) = next_label(words, rest, "action:") {
        if let Some((before, _, input)) = next_label(behind, behind, "action input:")
            && behind[..before].trim().is_empty()
            && is_name(tool)
        {
            let given = &behind[before..];
            let given = given[given.find(':')? + 1..].split("\nObservation").next().unwrap_or(input);
            let given = given.trim_start_matches(['*', ' ']).trim();
            return Some(Typed { thought, tool: tool.to_owned(), args: args_of(given) });
        }
        let inside = tool.split_once(['[', '(']).filter(|(_, inside)| inside.ends_with([']', ')']));
        if let Some((name, inside)) = inside.filter(|(name, _)| is_name(name)) {
            return Some(Typed {
                thought,
                tool: name.to_owned(),
                args: args_of(&inside[..inside.len() - 1]),
            });
        }
        rest = behind;
    }
    None
}

/// The next line of `rest`, a part of `whole`, that begins with a label in lower case: where the line begins, what stands
/// behind the label, and the lines behind it.
fn next_label<'w>(whole: &'w str, rest: &'w str, label: &str) -> Option<(usize, &'w str, &'w str)> {
    let mut at = whole.len() - rest.len();
    for line in rest.split_inclusive('\n') {
        let plain = line.trim().trim_start_matches(['*', '#', ' ']);
        if plain.get(..label.len()).is_some_and(|start| start.eq_ignore_ascii_case(label)) {
            let said = plain[label.len()..].trim_matches(['*', '`', ' ']);
            return Some((at, said, &whole[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// One fenced block of something that can be run, or of a call in JSON. Several are an explanation.
fn in_a_fence(words: &str) -> Option<Typed> {
    let mut fences = words.match_indices("```");
    let (open, close) = (fences.next()?.0, fences.next()?.0);
    if fences.next().is_some() {
        return None;
    }
    let (language, code) = words[open + 3..close].split_once('\n')?;
    let language = language.trim();
    let tool = match language.to_ascii_lowercase().as_str() {
        "json" | "" if code.trim_start().starts_with('{') => {
            return in_json(code).map(|call| Typed { thought: open, ..call });
        }
        "bash" | "sh" | "shell" | "zsh" | "console" | "terminal" | "powershell" => "bash",
        "python" | "py" | "python3" | "ipython" | "tool_code" => "python",
        "sql" => "sql",
        "javascript" | "js" | "node" => "node",
        _ => return None,
    };
    let args = Map::from_iter([("command".to_owned(), Value::from(code.trim()))]);
    Some(Typed { thought: open, tool: tool.to_owned(), args: Value::Object(args).to_string() })
}

/// A tag at the very end: `<tool_call>{…}</tool_call>`, `<read_file><path>a.rs</path></read_file>`,
/// `<function=bash><parameter=command>ls</parameter></function>`.
fn in_a_tag(words: &str) -> Option<Typed> {
    let (start, name, inside) = last_tag(words.trim_end())?;
    if is_one_of(name, WORDS) {
        return None;
    }
    if let Some(call) = in_json(inside) {
        return Some(Typed { thought: start, ..call });
    }
    let mut given = Map::new();
    let mut rest = inside.trim_end();
    while let Some((start, name, value)) = last_tag(rest) {
        let name = name.strip_prefix("parameter=").unwrap_or(name);
        given.insert(name.to_owned(), Value::from(value.trim()));
        rest = rest[..start].trim_end();
    }
    if given.is_empty() {
        given.insert("input".to_owned(), Value::from(inside.trim()));
    }
    let tool = name.strip_prefix("function=").unwrap_or(name);
    is_name(tool).then(|| Typed {
        thought: start,
        tool: tool.to_owned(),
        args: Value::Object(given).to_string(),
    })
}

/// The tag that a text ends with: where it begins, its name, what stands in it.
fn last_tag(text: &str) -> Option<(usize, &str, &str)> {
    let before = text.strip_suffix('>')?;
    let close = before.rfind("</")?;
    let closes = &before[close + 2..];
    let opens = |open: &usize| {
        let name = text[open + 1..].strip_prefix(closes)?;
        // `<function=bash>` is closed by `</function>`.
        let name =
            name.strip_prefix('=').map_or(Some(name), |rest| rest.find('>').map(|end| &rest[end..]))?;
        name.strip_prefix('>')
    };
    let open = text[..close].match_indices('<').map(|(open, _)| open).find(|open| opens(open).is_some())?;
    let name_end = open + text[open..].find('>')?;
    Some((open, &text[open + 1..name_end], &text[name_end + 1..close]))
}

/// Tags that hold words.
const WORDS: &[&str] = &[
    "think", "thinking", "thought", "thoughts", "plan", "analysis", "answer", "final", "final_answer",
    "reflection", "reasoning", "summary", "response", "result", "output",
];

/// A call in JSON: `{"name": "bash", "arguments": {…}}` or the same in other words.
fn in_json(text: &str) -> Option<Typed> {
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    let call: Map<String, Value> = serde_json::from_str(text).ok()?;
    let named = |names: &[&str]| names.iter().find_map(|name| call.get(*name));
    let tool =
        named(&["name", "tool", "tool_name", "action", "function"])?.as_str().filter(|tool| is_name(tool))?;
    let given = named(&["arguments", "args", "parameters", "input", "action_input", "tool_input"])?;
    let args = given.as_str().map_or_else(|| Cow::Owned(given.to_string()), Cow::Borrowed);
    Some(Typed { thought: 0, tool: tool.to_owned(), args: args_of(&args) })
}

/// Arguments as JSON: as they are, or as a text.
fn args_of(given: &str) -> String {
    if given.starts_with('{') && serde_json::from_str::<&serde_json::value::RawValue>(given).is_ok() {
        return given.to_owned();
    }
    Value::Object(Map::from_iter([("input".to_owned(), Value::from(given))])).to_string()
}

/// Whether this can be the name of a tool.
fn is_name(name: &str) -> bool {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.' | ':');
    (1..=64).contains(&name.len()) && name.chars().all(is_part)
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{is_outcome, typed_call};

    #[track_caller]
    fn reads(words: &str, tool: &str, args: &str) {
        let call = typed_call(words).expect("a call is typed");
        assert_eq!((call.tool.as_str(), call.args.as_str()), (tool, args));
        assert!(
            words[..call.thought].starts_with("I look.") || call.thought == 0,
            "{:?}",
            &words[..call.thought]
        );
    }

    #[test]
    fn calls_are_read_in_every_way_of_typing_them() {
        reads(
            "I look.\nAction: search\nAction Input: rust gateways",
            "search",
            r#"{"input":"rust gateways"}"#,
        );
        reads("I look.\n**Action:** search\n**Action Input:** {\"q\": 1}\n", "search", r#"{"q": 1}"#);
        reads("I look.\nAction 1: none\nAction: Search[Rust]", "Search", r#"{"input":"Rust"}"#);
        reads("I look.\n```bash\nls -la\n```", "bash", r#"{"command":"ls -la"}"#);
        reads("I look.\n```python\nprint(1)\n```\nThat is it.", "python", r#"{"command":"print(1)"}"#);
        reads(
            "I look.\n```json\n{\"action\": \"ls\", \"action_input\": \".\"}\n```",
            "ls",
            r#"{"input":"."}"#,
        );
        reads(
            "I look.\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}\n</tool_call>",
            "ls",
            r#"{"path":"."}"#,
        );
        reads("I look.\n<read_file>\n<path>a.rs</path>\n</read_file>", "read_file", r#"{"path":"a.rs"}"#);
        reads("I look.\n<execute_bash>ls</execute_bash>\n", "execute_bash", r#"{"input":"ls"}"#);
        reads(
            "I look.\n<function=bash>\n<parameter=command>ls</parameter>\n</function>",
            "bash",
            r#"{"command":"ls"}"#,
        );
    }

    #[test]
    fn words_are_words() {
        for words in [
            "Action: I will look at it once more.",
            "Run it like this:\n```bash\nmake\n```\nor like this:\n```bash\nmake all\n```",
            "```rust\nfn main() {}\n```",
            "<thinking>what now</thinking>",
            "The tag <b>bold</b> stands in the middle.",
            "{\"name\": \"ls\"}",
            "```",
            "</a>",
            "",
        ] {
            assert_eq!(typed_call(words), None, "{words}");
        }
    }

    #[test]
    fn an_outcome_says_so_first() {
        for words in [
            "Observation: 3 files",
            "OBSERVATION:\n3 files",
            "<returncode>0</returncode>\n<output>\n3 files",
            "<tool_response>\n3 files",
            "[execute_command for 'ls'] Result:\n3 files",
            "EXECUTION RESULT of [bash]:\n3 files",
            "Command output: 3 files",
            "Exit code: 0",
        ] {
            assert!(is_outcome(words), "{words}");
        }
        for words in [
            "Please look at the output: it is wrong, and so is all of the rest of it.",
            "That is not what I asked for as a result, sorry: try again.",
            "Go on.",
            "<task>3 files</task>",
            "",
        ] {
            assert!(!is_outcome(words), "{words}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_typed_breaks_nothing(words in "(Action: ?|Action Input: ?|```|bash|\\n|<a>|</a>|<function=|>|\\{|\"|é|[a-z ]{1,5}){0,30}") {
            if let Some(call) = typed_call(&words) {
                prop_assert!(words.is_char_boundary(call.thought));
                prop_assert!(serde_json::from_str::<serde_json::Value>(&call.args).is_ok());
            }
            is_outcome(&words);
        }
    }
}
