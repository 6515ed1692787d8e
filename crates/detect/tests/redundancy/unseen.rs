//! Agents with tools of other names and forms: what holds for them, and what must not be held against them.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, loops, times, verdict, write};

#[test]
fn whoever_sends_a_command_or_a_request_is_told_by_the_answer() {
    let keys = |shows: &str| call("send_keystrokes", r#"{"keystrokes":"tail -n 3 train.log\n"}"#, shows);
    let line = |shows: &str| call("type_command", r#"{"text":"show the state of the robot"}"#, shows);
    let request = |shows: &str| {
        let args =
            r#"{"body":"query { order(id: 7) { state of the parcel } }","url":"https://shop.test/graphql"}"#;
        call("http_post", args, shows)
    };
    for send in [&keys as &dyn Fn(&str) -> Line, &line, &request] {
        let moves: Vec<_> = (1..6).map(|n| send(&format!("step {n}00 is reached"))).collect();
        assert_ne!(verdict(&moves), Some(Severity::Loop), "{:?}", moves[0].tool);
        assert_eq!(loops(&times(3, &[send("step 100 is reached")])), [Kind::Repeat], "it stands still");
    }
    let put = |n: usize| Line { result: Some(format!("written, {n} lines")), ..write("a.py", "x = 1") };
    assert_eq!(loops(&[1, 2, 3].map(put)), [Kind::Repeat], "a text that is put somewhere is no request");
}
