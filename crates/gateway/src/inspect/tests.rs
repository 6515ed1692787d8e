use loopbreaker::{RedundancyConfig, RedundancyRules, Severity};
use loopbreaker_dialect::Dialect;
use proptest::prelude::*;

use super::{Inspection, Reader};
use crate::loops::Ruled;
use crate::reminders::{Ending, Reminders};
use crate::transcripts::Transcripts;

/// A gateway's memory, and one tenant that uses it.
struct Desk {
    rules: RedundancyRules,
    transcripts: Transcripts,
    reminders: Reminders,
}

impl Desk {
    fn new() -> Self {
        Self {
            rules: RedundancyRules::compile(&RedundancyConfig::default()),
            transcripts: Transcripts::new(64 << 20),
            reminders: Reminders::default(),
        }
    }

    fn read(&self, tenant: u128, body: &str) -> Inspection {
        let (rules, transcripts) = (&self.rules, &self.transcripts);
        let goes_on =
            Reader { tenant, rules, transcripts, fingerprint: true, anew: false, knows_the_end: false };
        let read =
            |reader: Reader<'_>| reader.read(Dialect::Chat, body.as_bytes(), &mut |_, _, _| ()).unwrap();
        let seen = read(goes_on);
        let ending = seen.ending.clone();
        if ending.is_some_and(|ending| self.reminders.has_moved(0, &ending, &seen.chain)) {
            return read(Reader { anew: true, knows_the_end: true, ..goes_on });
        }
        seen
    }

    /// Reads a body and keeps what was read, as every request does.
    fn take(&self, tenant: u128, body: &str) -> Seen {
        let inspection = self.read(tenant, body);
        let seen = Seen::of(&inspection);
        if let Some(ending) = &inspection.ending {
            self.reminders.remember(0, ending);
        }
        inspection.keep(&self.transcripts, false);
        seen
    }
}

/// What must not depend on how a body was read.
#[derive(Debug, PartialEq)]
struct Seen {
    tip: u128,
    anchor: Option<u128>,
    document: Option<[u8; 48]>,
    rulings: Vec<(String, u32)>,
    model: Option<String>,
}

impl Seen {
    fn of(inspection: &Inspection) -> Self {
        let told = |ruled: &Ruled| (ruled.finding.message.clone(), ruled.strikes);
        Self {
            tip: inspection.transcript.tip,
            anchor: inspection.transcript.anchor,
            document: inspection.document,
            rulings: inspection.transcript.loops.rulings().iter().map(told).collect(),
            model: inspection.facts.model.as_deref().map(str::to_owned),
        }
    }
}

/// The body of the request after so many calls.
fn body(calls: &[u8]) -> String {
    let mut messages = vec![format!(r#"{{"role":"user","content":"Mend the tests. {}"}}"#, "x".repeat(300))];
    for (index, call) in calls.iter().enumerate() {
        messages.push(format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{index}","type":"function","function":{{"name":"bash","arguments":"{{\"command\":\"cat {call}\"}}"}}}}]}}"#
        ));
        messages.push(format!(r#"{{"role":"tool","tool_call_id":"c{index}","content":"file {call}"}}"#));
    }
    format!(r#"{{"messages":[{}],"model":"m","tools":[]}}"#, messages.join(","))
}

#[test]
fn a_request_that_goes_on_is_read_from_there() {
    let desk = Desk::new();
    desk.take(1, &body(&[1]));
    assert!(desk.read(1, &body(&[1, 2])).resumed);
    assert!(!Desk::new().read(1, &body(&[1, 2])).resumed);
}

#[test]
fn two_tenants_never_share_a_transcript() {
    let desk = Desk::new();
    let one = desk.take(1, &body(&[1]));
    let other = desk.read(2, &body(&[1, 2]));
    assert!(!other.resumed);
    assert_ne!(Some(one.tip), other.chain.first().copied());
}

#[test]
fn a_retry_is_the_same_occurrence() {
    let desk = Desk::new();
    let first = desk.take(1, &body(&[7, 7, 7, 7]));
    assert_eq!(first.rulings[0].1, 1, "the fourth is one strike");
    for _ in 0..3 {
        assert_eq!(desk.take(1, &body(&[7, 7, 7, 7])), first);
    }
}

#[test]
fn bytes_that_change_early_cost_time_and_nothing_else() {
    let desk = Desk::new();
    let volatile = |nonce: u8, calls: &[u8]| {
        body(calls).replacen('{', &format!(r#"{{"metadata":{{"n":"{nonce}"}},"#), 1)
    };
    desk.take(1, &volatile(1, &[7, 7]));
    let again = desk.read(1, &volatile(2, &[7, 7, 7]));
    assert!(!again.resumed);
    assert_eq!(again.transcript.loops.rulings()[0].finding.severity, Severity::Loop);
    assert_eq!(again.transcript.loops.rulings()[0].finding.count, 3);
}

/// The same with a message at its end that the next request will not have there.
fn ending_with(message: &str, calls: &[u8]) -> String {
    body(calls).replace(r#"],"model""#, &format!(r#",{message}],"model""#))
}

/// What is seen of a loop whose requests end so, one after the other.
fn seen_of_a_loop(message: &str) -> Vec<usize> {
    let desk = Desk::new();
    (1..=5).map(|times| desk.take(1, &ending_with(message, &vec![7; times])).rulings.len()).collect()
}

#[test]
fn the_beginning_of_an_answer_hides_no_loop() {
    assert_eq!(seen_of_a_loop(r#"{"role":"assistant","content":"I'll"}"#), [0, 1, 1, 1, 1]);
}

#[test]
fn an_answer_that_was_begun_is_heard_when_it_has_been_given() {
    let desk = Desk::new();
    let begun = desk.take(1, &ending_with(r#"{"role":"assistant","content":"It is"}"#, &[1]));
    assert_eq!(begun.tip, Desk::new().take(1, &body(&[1])).tip, "nothing has been said yet");
    let given = r#"{"role":"assistant","content":"It is done"},{"role":"user","content":"Thanks"}"#;
    let seen = desk.take(1, &ending_with(given, &[1]));
    assert_eq!(seen, Desk::new().take(1, &ending_with(given, &[1])));
}

#[test]
fn two_beginnings_of_an_answer_are_two_requests() {
    let begun = |words| ending_with(&format!(r#"{{"role":"assistant","content":"{words}"}}"#), &[1]);
    assert_ne!(Desk::new().take(1, &begun("A")).document, Desk::new().take(1, &begun("B")).document);
}

#[test]
fn a_reminder_that_moves_to_the_end_hides_a_loop_only_once() {
    let reminder = r#"{"role":"user","content":"Answer with a tool call."}"#;
    assert_eq!(seen_of_a_loop(reminder), [0, 1, 1, 1, 1]);
}

#[test]
fn what_stands_behind_a_result_is_remembered_up_to_a_bound() {
    let said = |times| [r#"{"role":"user","content":"Go on."}"#].repeat(times).join(",");
    let ending = |times| Desk::new().read(1, &ending_with(&said(times), &[1])).ending;
    assert_eq!(ending(Ending::MAX_WORDS).unwrap().words.len(), Ending::MAX_WORDS);
    assert_eq!(ending(Ending::MAX_WORDS + 1), None);
}

#[test]
fn new_words_behind_a_loop_are_heard_whenever_the_request_comes_again() {
    let desk = Desk::new();
    let told = ending_with(r#"{"role":"user","content":"Look elsewhere."}"#, &[7, 7, 7]);
    desk.take(1, &body(&[7, 7, 7]));
    for _ in 0..2 {
        assert!(desk.take(1, &told).rulings.is_empty());
        desk.transcripts.clear();
    }
}

#[test]
fn a_tail_that_changed_is_read_again() {
    let desk = Desk::new();
    desk.take(1, &body(&[1]));
    let other = body(&[1, 2]).replace(r#""model":"m""#, r#""model":"n""#);
    let seen = desk.read(1, &other);
    assert!(seen.resumed);
    assert_eq!(seen.facts.model.as_deref(), Some("n"));
}

proptest! {
    /// Whatever was seen before, and however it is cut into requests, reading on gives what reading all gives.
    #[test]
    fn reading_on_gives_what_reading_all_gives(calls in prop::collection::vec(0_u8..4, 1..12), cuts in prop::collection::vec(any::<bool>(), 12)) {
        let desk = Desk::new();
        for end in 1..=calls.len() {
            if cuts[end - 1] || end == calls.len() {
                let seen = desk.take(1, &body(&calls[..end]));
                prop_assert_eq!(seen, Desk::new().take(1, &body(&calls[..end])));
            }
        }
    }

    /// Two bodies have one fingerprint exactly when they say the same.
    #[test]
    fn white_space_and_key_order_do_not_matter_and_words_do(calls in prop::collection::vec(0_u8..4, 1..6)) {
        let desk = Desk::new();
        let one = body(&calls);
        let same = one.replace("\",\"", "\" , \"").replace(r#""model":"m","tools":[]"#, r#""tools":[ ],"model":"m""#);
        let other = one.replace("Mend", "Mind");
        let document = |body: &str| desk.read(1, body).document;
        prop_assert_eq!(document(&one), document(&same));
        prop_assert_ne!(document(&one), document(&other));
    }
}

#[test]
fn a_loop_of_a_tool_that_runs_within_answers_is_told_whatever_else_they_call() {
    let rulings = |page: &dyn Fn(usize) -> String| {
        let round = |n: usize| {
            let page = page(n);
            format!(
                r#"{{"role":"assistant","content":[{{"type":"server_tool_use","id":"s{n}","name":"web_fetch","input":{{"url":"u"}}}},
                {{"type":"web_fetch_tool_result","tool_use_id":"s{n}","content":{{"page":"{page}"}}}},
                {{"type":"tool_use","id":"t{n}","name":"read_file","input":{{"path":"{n}.txt"}}}}]}},
                {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{n}","content":"the words of {n}"}}]}}"#
            )
        };
        let rounds: Vec<_> = (0..4).map(round).collect();
        let body = format!(r#"{{"messages":[{{"role":"user","content":"go on"}},{}]}}"#, rounds.join(","));
        Seen::of(&Desk::new().read(1, &body)).rulings
    };
    let told = rulings(&|_| "one and the same".to_owned());
    assert!(told.iter().any(|(message, _)| message.contains("web_fetch")), "{told:?}");
    assert_eq!(rulings(&|n| format!("page number {n}")), []);
}
