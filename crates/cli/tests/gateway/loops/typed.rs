//! Agents that type their calls in words, and get the results as words of the user.

use crate::lab::Lab;
use crate::talk::Chat;

const THOUGHTS: [&str; 6] =
    ["Let me see.", "Once more.", "I want to be sure.", "What is there?", "A look at it.", "And now?"];

/// How calls are typed, and how they are answered.
const WAYS: [(&str, &str); 4] = [
    ("{}\n```bash\ncat a.txt\n```", "<returncode>0</returncode>\n<output>\nnothing\n</output>"),
    ("{}\nAction: bash\nAction Input: cat a.txt", "Observation: nothing"),
    (
        "{}\n<execute_command>\n<command>cat a.txt</command>\n</execute_command>",
        "[execute_command for 'cat a.txt'] Result:\nnothing",
    ),
    (
        "{}\n<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"cat a.txt\"}}</tool_call>",
        "<tool_response>\nnothing\n</tool_response>",
    ),
];

#[test]
fn a_loop_of_typed_calls_climbs_like_any_other() {
    for (words, result) in WAYS {
        let lab = Lab::new();
        let verdict = |times: usize| {
            let said = THOUGHTS[..times].iter().map(|thought| words.replacen("{}", thought, 1));
            let chat = said.fold(Chat::new("find it"), |chat, said| chat.typed(&said, result));
            lab.chat(&[], chat.body()).header("x-loopbreaker-verdict").unwrap_or_default().to_owned()
        };
        let verdicts: Vec<String> = (1..=6).map(verdict).collect();
        assert_eq!(verdicts, ["allow", "warn", "hint", "hint", "throttle", "reject"], "{words}");
    }
}

#[test]
fn typed_calls_that_are_answered_anew_are_work() {
    let lab = Lab::new();
    let mut chat = Chat::new("build it");
    for turn in 0..8 {
        let words = format!("{}\n```bash\ncat part{turn}.txt\n```", THOUGHTS[turn % 6]);
        chat = chat.typed(&words, &format!("<output>\npart {turn} of it\n</output>"));
        let reply = lab.chat(&[], chat.body());
        assert_eq!(reply.header("x-loopbreaker-verdict"), Some("allow"), "turn {turn}");
    }
}

#[test]
fn code_in_an_answer_is_no_call_unless_somebody_says_what_came_of_it() {
    let lab = Lab::new();
    let mut chat = Chat::new("how do I list files?");
    for words in
        ["Thanks, and how on a remote machine?", "And in a container?", "And sorted?", "And as a tree?"]
    {
        chat = chat.typed("Like this:\n```bash\nls\n```", words);
        let reply = lab.chat(&[], chat.body());
        assert_eq!(reply.header("x-loopbreaker-verdict"), Some("allow"), "{words}");
    }
}
