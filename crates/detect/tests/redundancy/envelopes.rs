//! What a harness counts or draws anew for each answer hides no loop of an agent with one tool, or of one that is answered
//! with objects; what an answer counts or names itself is news.

use loopbreaker::Kind;

use crate::script::{Line, call, findings, loops, sh, times};

/// The run with something around each answer.
fn framed(lines: &[Line], frame: impl Fn(usize, &str) -> String) -> Vec<Line> {
    let frame = |(at, line): (usize, &Line)| Line {
        result: line.result.as_deref().map(|result| frame(at, result)),
        ..line.clone()
    };
    lines.iter().enumerate().map(frame).collect()
}

/// An agent that has a database, and nothing else.
fn queries() -> Vec<Line> {
    let query = |query: &str, rows: &str| call("sql", &format!("{{\"query\":{query:?}}}"), rows);
    vec![
        query("SHOW TABLES", "[('city',), ('country',)]"),
        query("DESCRIBE city", "[('id', 'int'), ('name', 'text')]"),
        query("SELECT name FROM city", "[('Rome',), ('Oslo',)]"),
    ]
}

/// The same query once more, and its answer.
fn stuck() -> Vec<Line> {
    times(3, &[call("sql", r#"{"query":"SELECT name FROM country"}"#, "[('Italy',), ('Norway',)]")])
}

#[test]
fn what_counts_the_answers_of_one_tool_hides_no_loop() {
    let frames: [fn(usize, &str) -> String; 3] = [
        |at, result| format!("{result}\n[Current step: {}/30]", at + 1),
        |at, result| format!("Step {at}\n{result}"),
        |at, result| format!("{{\"turn\": {}, \"rows\": {result:?}}}", at + 1),
    ];
    for (which, frame) in frames.into_iter().enumerate() {
        let run = framed(&[queries(), stuck()].concat(), frame);
        assert_eq!(loops(&run), [Kind::Repeat], "frame {which}");
        assert_eq!(loops(&framed(&queries(), frame)), [], "frame {which}, at work");
    }
}

#[test]
fn an_answer_that_only_counts_is_none() {
    let looks = vec![sh("ls src", "a.rs b.rs"), sh("grep -rn todo src", ""), sh("cat src/a.rs", "fn a() {}")];
    let run = [looks, times(3, &[sh("cat notes.txt", "")])].concat();
    assert_eq!(
        loops(&framed(&run, |at, result| format!("{result}\n[Current step: {}/30]", at + 1))),
        [Kind::Repeat]
    );
}

#[test]
fn an_answer_that_never_says_more_than_a_number_says_that() {
    let part = |at: usize| call("read_part", &format!("{{\"offset\":{}}}", at * 200), &format!("part {at}"));
    assert_eq!(findings(&(0..20).map(part).collect::<Vec<_>>()), []);
}

#[test]
fn what_counts_from_the_second_answer_on_is_news() {
    let [first, ..] = &queries()[..] else { return };
    let rest =
        framed(&[queries(), stuck()].concat(), |at, result| format!("{result}\nHits so far: {}", at + 1));
    assert_eq!(loops(&[vec![first.clone()], rest].concat()), []);
}

#[test]
fn what_grows_by_more_than_the_answers_is_news() {
    let run = framed(&[queries(), stuck()].concat(), |at, result| format!("{result}\nGold: {}", 1 + 20 * at));
    assert_eq!(loops(&run), []);
}

#[test]
fn what_only_one_call_or_two_count_is_news() {
    let press =
        |at: usize| call("press", r#"{"key":"plus"}"#, &format!("The display is lit.\nIt reads {}", at + 1));
    assert_eq!(loops(&(0..12).map(press).collect::<Vec<_>>()), []);
    let look = |at: usize| {
        call("look_at", &format!("{{\"pile\":{}}}", at % 2), &format!("a pile\n{} stones", at + 1))
    };
    assert_eq!(loops(&(0..12).map(look).collect::<Vec<_>>()), []);
}

#[test]
fn what_deeds_count_is_theirs() {
    let deeds =
        ["chop the oak", "chop the elm", "chop the pine", "chop the pine", "chop the pine", "chop the pine"];
    let act = |(at, deed): (usize, &&str)| {
        call("act", &format!("{{\"do\":{deed:?}}}"), &format!("You swing the axe.\nLogs: {}", at + 1))
    };
    assert_eq!(loops(&deeds.iter().enumerate().map(act).collect::<Vec<_>>()), []);
}

#[test]
fn a_number_that_the_call_names_was_asked_for() {
    let words = "a long line of words that every part has in common with all of the others, for it is a form, as they are";
    let part = |n: usize| sh(&format!("cat part{n}.txt"), &format!("Part {n}\n{words}\n{words} again"));
    assert_eq!(loops(&(1..12).map(part).collect::<Vec<_>>()), []);
}

/// An agent with tools of several kinds that are answered with objects.
fn calls() -> Vec<Line> {
    vec![
        call("get_customer", r#"{"name":"Ada"}"#, "customer since spring"),
        call("list_orders", r#"{"name":"Ada"}"#, "one order of two books"),
        call("search_products", r#"{"words":"atlas"}"#, "no atlas"),
        call("read_policy", r#"{"about":"returns"}"#, "thirty days"),
        call("get_customer", r#"{"name":"Bob"}"#, "customer since autumn"),
    ]
}

fn asks_again() -> Vec<Line> {
    times(3, &[call("list_orders", r#"{"name":"Bob"}"#, "two orders of one lamp each")])
}

#[test]
fn what_is_drawn_anew_for_each_object_hides_no_loop() {
    let frames: [fn(usize, &str) -> String; 3] = [
        |at, result| format!("{{\"id\": \"res_{:x}f{at}\", \"output\": {result:?}}}", at * 7919 % 1009),
        |at, result| format!("{{'said': {result:?}, 'meta': {{'node': 'n{:x}a{at}'}}}}", at * 7919 % 1009),
        |at, result| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{at},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{result:?}}}]}}}}"
            )
        },
    ];
    for (which, frame) in frames.into_iter().enumerate() {
        let run = framed(&[calls(), asks_again()].concat(), frame);
        assert_eq!(loops(&run), [Kind::Repeat], "frame {which}");
        assert_eq!(loops(&framed(&calls(), frame)), [], "frame {which}, at work");
    }
}

#[test]
fn numbers_of_objects_are_news() {
    let members: [fn(usize) -> String; 3] = [
        |at| format!("\"progress\": {}", 10 + 7 * at),
        |at| format!("\"price\": {}", 40 + at * 11 % 19),
        |at| format!("\"position\": [{at}, 4]"),
    ];
    for (which, member) in members.into_iter().enumerate() {
        let run = framed(&[calls(), asks_again()].concat(), |at, said| {
            format!("{{\"said\": {said:?}, {}}}", member(at))
        });
        assert_eq!(loops(&run), [], "member {which}");
    }
}

#[test]
fn names_that_some_objects_lack_are_news() {
    let run = [calls(), times(2, &asks_again())].concat();
    let named = |at: usize, said: &str| {
        format!("{{\"said\": {said:?}, \"image\": \"i{:x}b{at}\"}}", at * 7919 % 1009)
    };
    assert_eq!(loops(&framed(&run, named)), [Kind::Repeat], "all have one");
    let some = |at: usize, said: &str| match at % 4 {
        3 => format!("{{\"said\": {said:?}, \"image\": null}}"),
        _ => named(at, said),
    };
    assert_eq!(loops(&framed(&run, some)), [], "some have none");
}

#[test]
fn records_that_differ_in_their_names_are_different() {
    let find = |name: &str, at: usize| {
        let record = format!(
            "{{\"id\": \"u{:x}c{at}\", \"state\": \"active\", \"plan\": \"basic\"}}",
            at * 7919 % 1009
        );
        call("find_user", &format!("{{\"name\":{name:?}}}"), &record)
    };
    let names = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida"];
    let run: Vec<Line> = names.iter().enumerate().map(|(at, name)| find(name, at)).collect();
    assert_eq!(findings(&run), []);
}

#[test]
fn what_a_harness_tells_in_a_tag_of_its_own_is_no_answer() {
    // From the very first call on: there is nothing to learn its form from.
    let table = |at: usize, result: &str| {
        format!(
            "{result}\n\n<environment_details>\n# Context\n{} tokens used\n</environment_details>",
            12_000 + 731 * at
        )
    };
    let reminder = |at: usize, result: &str| match at % 2 {
        0 => format!("{result}\n\n<system-reminder>\nThe list of tasks is empty.\n</system-reminder>\n"),
        _ => result.to_owned(),
    };
    assert_eq!(loops(&framed(&stuck(), table)), [Kind::Repeat]);
    assert_eq!(loops(&framed(&stuck(), reminder)), [Kind::Repeat]);
    let state = |at: usize, result: &str| format!("{result}\n<status>HP: {}</status>", 30 - at);
    assert_eq!(loops(&framed(&stuck(), state)), [], "what a world tells in tags is news");
}

#[test]
fn a_file_that_changes_is_news_whatever_the_harness_reminds_of() {
    let reminder = |_: usize, result: &str| {
        format!("{result}\n<system-reminder>\nThe file was changed by a linter.\n</system-reminder>")
    };
    let look = |words: &str| call("read_file", r#"{"path":"notes.md"}"#, words);
    let run = ["one", "two", "three", "four"].map(look);
    assert_eq!(loops(&framed(&run, reminder)), []);
}
