//! What a call says about itself makes it no other call.

use loopbreaker::{DetectorsConfig, Guard, Kind, Step};

use crate::script::{Line, call, findings, loops};

/// A call with one more field, which says something else each time.
fn explained(tool: &str, args: &str, field: &str, at: usize, result: &str) -> Line {
    let said = ["Let me see.", "Once more, to be sure.", "This should tell us.", "I need the details now."];
    call(tool, &format!("{{{args},\"{field}\":\"{}\"}}", said[at % 4]), result)
}

#[test]
fn the_same_call_with_other_words_about_it_is_the_same() {
    let command = r#""command":"cat notes.txt""#;
    for field in ["explanation", "reason", "toolSummary", "thought", "description", "tool_call_id", "intent"]
    {
        let run: Vec<Line> = (0..3).map(|at| explained("bash", command, field, at, "nothing")).collect();
        assert_eq!(loops(&run), [Kind::Repeat], "{field}");
    }
    let list = r#""relative_workspace_path":"src""#;
    let run: Vec<Line> =
        (0..3).map(|at| explained("list_dir", list, "explanation", at, "a.rs b.rs")).collect();
    assert_eq!(loops(&run), [Kind::Repeat], "a folder is what is asked for");
    let click = r#""ref":"e12""#;
    let run: Vec<Line> =
        (0..6).map(|at| explained("browser_click", click, "element", at, "page unchanged")).collect();
    assert!(!loops(&run).is_empty(), "a name for what is clicked");
}

#[test]
fn how_long_a_command_may_take_makes_it_no_other() {
    let run = |tool: &str, what: &str, answer: fn(usize) -> String| -> Vec<Line> {
        let args =
            |at: usize| format!("{{{what},\"timeout_ms\":{},\"max_output_tokens\":{}}}", 1000 * at, 500 * at);
        (1..4).map(|at| call(tool, &args(at), &answer(at))).collect()
    };
    let same = |_: usize| "nothing".to_owned();
    assert_eq!(loops(&run("exec_command", r#""cmd":"cat notes.txt""#, same)), [Kind::Repeat]);
    let more = |at: usize| "one more line of it\n".repeat(at);
    assert_eq!(loops(&run("exec_command", r#""cmd":"cat notes.txt""#, more)), [], "it shows more each time");
    assert_eq!(loops(&run("set_alarm", r#""name":"tea""#, |at| format!("at {at}"))), []);
}

#[test]
fn other_calls_with_the_same_words_about_them_are_others() {
    let run: Vec<Line> = (0..5)
        .map(|at| {
            let args = format!(r#"{{"command":"cat part{at}.txt","explanation":"Let me see."}}"#);
            call("bash", &args, &format!("part {at} of it"))
        })
        .collect();
    assert_eq!(findings(&run), []);
}

#[test]
fn what_a_call_is_about_is_no_remark() {
    // A ticket is its description, a tool for thoughts takes thoughts, and who only gives a reason does nothing else.
    let ticket =
        |at| explained("create_ticket", r#""queue":"ops""#, "description", at, &format!("ticket {at}"));
    assert_eq!(findings(&(0..4).map(ticket).collect::<Vec<_>>()), []);
    let think = |at: usize| explained("sequentialthinking", &format!("\"number\":{at}"), "thought", at, "ok");
    assert_eq!(loops(&(0..4).map(think).collect::<Vec<_>>()), []);
    // What is recorded has its reasons, and each is another one.
    let judge = |at| explained("judge", r#""verdict":"good""#, "reasoning", at, "Recorded.");
    assert_eq!(loops(&(0..4).map(judge).collect::<Vec<_>>()), []);
    let note = |at| explained("note", r#""path":"a.rs","line":3"#, "description", at, "Stored.");
    assert_eq!(loops(&(0..4).map(note).collect::<Vec<_>>()), []);
    let dial = |at: usize| {
        call("transcribe", &format!("{{\"call_id\":\"phone-{at}\",\"lang\":\"en\"}}"), "empty line")
    };
    assert!(findings(&(0..3).map(dial).collect::<Vec<_>>()).iter().all(|found| found.kind != Kind::Repeat));
    let hand_over = ["the bill is wrong", "a refund is due", "the parcel is lost", "the card was blocked"];
    let hand_over = hand_over.map(|why| call("hand_over", &format!("{{\"reason\":\"{why}\"}}"), why));
    assert_eq!(findings(&hand_over), []);
}

#[test]
fn the_guard_knows_a_call_whatever_it_says_about_itself() {
    let guard = Guard::new(&DetectorsConfig::default());
    let session = guard.session("run-1");
    let args = |at: usize| {
        format!(r#"{{"command":"cat notes.txt","explanation":"try {}"}}"#, ["a", "b", "c", "d"][at])
    };
    for at in 0..3 {
        assert!(session.check("bash", Some(&args(at))).allowed);
        session.outcome(&Step::call("bash", &args(at)).answered("nothing", None));
    }
    let verdict = session.check("bash", Some(&args(3)));
    assert_eq!((verdict.allowed, verdict.kind), (false, Some(Kind::Repeat)));
    assert!(session.check("bash", Some(r#"{"command":"cat other.txt","explanation":"try a"}"#)).allowed);
}
