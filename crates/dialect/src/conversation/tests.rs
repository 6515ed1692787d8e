use super::*;

fn call(id: &str) -> Event<'_> {
    let step = Held { tool: Some("bash".into()), args: Some(id.into()), ..Held::default() };
    Event::Called { waits_for: Some(id.into()), step }
}

fn result<'a>(id: &'a str, text: &'a str) -> Event<'a> {
    let outcome = Outcome { result: Some(text.into()), ..Outcome::default() };
    Event::Returned { call: CallName { id: Some(id.into()), tool: None }, outcome }
}

fn answer(id: &str) -> Event<'_> {
    Event::Answer(Answer { id: (!id.is_empty()).then(|| id.into()), tokens: Some(9), ..Answer::default() })
}

/// `round role thought args=result tokens` of every step.
fn steps<'a>(events: impl IntoIterator<Item = Event<'a>>) -> Vec<String> {
    let mut conversation = Conversation::default();
    let mut found = Vec::new();
    let mut emit = |step: &Step<'_>| {
        let round = step.round.map_or("-".to_owned(), |round| round.to_string());
        let words = [step.thought, step.args, step.result].map(|text| text.unwrap_or("-")).join(" ");
        let tokens = step.tokens.map_or(String::new(), |tokens| format!(" {tokens}"));
        let role = if step.role == Role::Outside { "outside " } else { "" };
        found.push(format!("{role}{round} {words}{tokens}"));
    };
    for event in events {
        conversation.take(event, &mut emit);
    }
    conversation.finish(&mut emit);
    found
}

#[test]
fn calls_of_one_answer_are_one_round_in_their_own_order() {
    let found =
        steps([answer(""), call("a"), call("b"), result("b", "2"), result("a", "1"), answer(""), call("c")]);
    assert_eq!(found, ["0 - a 1 9", "0 - b 2", "1 - c - 9"]);
}

#[test]
fn words_go_with_the_first_call_and_are_a_step_without_one() {
    let found = steps([
        answer(""),
        Event::Said("look".into()),
        call("a"),
        call("b"),
        answer(""),
        Event::Said("bye".into()),
    ]);
    assert_eq!(found, ["0 look a - 9", "0 - b -", "1 bye - - 9"]);
}

#[test]
fn thinking_is_the_thought_of_a_call_without_words_and_never_a_step() {
    let found = steps([
        answer(""),
        Event::Reasoned("hm".into()),
        call("a"),
        answer(""),
        Event::Reasoned("hm".into()),
    ]);
    assert_eq!(found, ["0 hm a - 9"]);
}

#[test]
fn an_answer_with_the_same_id_goes_on_after_a_result() {
    let found = steps([answer("m"), call("a"), result("a", "1"), answer("m"), call("b"), result("b", "2")]);
    assert_eq!(found, ["0 - a 1 9", "0 - b 2"]);
}

#[test]
fn without_an_answer_a_new_round_begins_after_a_result() {
    let found = steps([call("a"), call("b"), result("a", "1"), result("b", "2"), call("c")]);
    assert_eq!(found, ["0 - a 1", "0 - b 2", "1 - c -"]);
}

#[test]
fn words_from_outside_wait_for_the_results_before_them() {
    let found =
        steps([answer(""), call("a"), Event::Heard { text: "stop".into(), time: None }, result("a", "1")]);
    assert_eq!(found, ["0 - a 1 9", "outside - stop - -"]);
}

#[test]
fn a_result_without_an_id_belongs_to_the_first_open_call() {
    let outcome = Outcome { result: Some("1".into()), ..Outcome::default() };
    let found = steps([call("a"), call("b"), Event::Returned { call: CallName::default(), outcome }]);
    assert_eq!(found, ["0 - a 1", "0 - b -"]);
}

#[test]
fn a_result_without_a_call_is_dropped() {
    assert_eq!(steps([result("x", "1")]), [""; 0]);
}

#[test]
fn more_open_calls_than_the_bound_go_on_without_results() {
    let mut conversation = Conversation::default();
    let mut count = 0;
    for _ in 0..MAX_HELD + 10 {
        conversation.take(call("a"), &mut |_| count += 1);
    }
    assert_eq!(count, 10);
}

#[test]
fn large_words_are_not_held_above_the_bound() {
    let mut conversation = Conversation::default();
    let large = "x".repeat(MAX_BYTES / 2 + 1);
    for _ in 0..20 {
        conversation.take(Event::Said(Cow::Borrowed(&large)), &mut |_| ());
        assert!(conversation.bytes() <= MAX_BYTES);
    }
}
