use std::sync::Arc;
use std::time::{Duration, SystemTime};

use loopbreaker::{Outcome, RedundancyConfig, RedundancyRules, Step};
use loopbreaker_dialect::{Answer, Call, Dialect, Ran, read_request};
use loopbreaker_observatory::{Caller, Observatory, Options};
use serde_json::Value;

use super::{Answered, Entry, Heard, Journal, Judged, Who};
use crate::loops::{LoopState, Tail};
use crate::sessions::SessionKey;

fn who() -> Who {
    Who {
        tenant: "acme".into(),
        session: "run-17".into(),
        key: SessionKey(17),
        anchor: 1,
        agent: "coder".into(),
        model: Some("gpt-5".into()),
        dialect: Some(Dialect::Chat),
        history_elsewhere: false,
        at: SystemTime::now(),
    }
}

fn call(id: &str, path: &str) -> Call {
    Call { id: id.to_owned(), tool: "read_file".to_owned(), args: format!(r#"{{"path":"{path}"}}"#) }
}

/// A conversation as the gateway sees it: requests that carry ever more of a transcript, and answers to them.
struct Talk {
    loops: LoopState,
    heard: usize,
    messages: Vec<String>,
}

impl Talk {
    fn new() -> Self {
        let rules = RedundancyRules::compile(&RedundancyConfig::default());
        Self { loops: LoopState::new(&rules), heard: 0, messages: Vec::new() }
    }

    /// A request with these messages behind those before; the steps that are new, and the place of the next one.
    fn request(&mut self, more: &[&str]) -> (Vec<Heard>, usize) {
        self.messages.extend(more.iter().map(|&message| message.to_owned()));
        let body = format!(r#"{{"messages":[{}]}}"#, self.messages.join(","));
        let mut messages = Vec::new();
        read_request(Dialect::Chat, body.as_bytes(), None, &mut |message| messages.push(message)).unwrap();
        let mut steps = Vec::new();
        let mut tell = |place: usize, step: &Step<'_>, outcome: &Outcome| {
            steps.push(Heard::of(place, step, outcome));
        };
        self.loops.hear(&messages[self.heard..], &mut Tail::default(), &mut tell);
        self.heard = messages.len();
        (steps, self.loops.steps())
    }
}

const ASKED: &str = r#"{"role":"user","content":"find the bug"}"#;
const CALLED: &str = r#"{"role":"assistant","content":"Two files.","tool_calls":[
    {"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}},
    {"id":"c2","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}]}"#;
const FIRST: &str = r#"{"role":"tool","tool_call_id":"c1","content":"text of a"}"#;
const SECOND: &str = r#"{"role":"tool","tool_call_id":"c2","content":"Error: no such file"}"#;

fn answered(position: usize, text: &str, calls: Vec<Call>) -> Entry {
    let answer = Answer { text: text.to_owned(), calls, ..Answer::default() };
    Entry::Answered(
        who(),
        Box::new(Answered { position, answer, tokens: 12, cost_micros: 500_000, is_given_again: false }),
    )
}

async fn observed(observatory: &Observatory, path: &str) -> Value {
    let request = hyper::Request::get(format!("/api/v1/{path}"));
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let response = observatory.handle(request, &Caller::local()).await;
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

async fn steps(observatory: &Observatory) -> Vec<Value> {
    let answer = observed(observatory, "sessions/run-17/steps").await;
    answer["steps"].as_array().unwrap_or_else(|| panic!("no steps in {answer}")).clone()
}

#[tokio::test]
async fn a_call_is_written_pending_and_completed_once_by_the_next_request() {
    let folder = tempfile::tempdir().unwrap();
    let observatory = Arc::new(Observatory::open(Options::at(folder.path().join("log.db"))).unwrap());
    let journal = Journal::open(Arc::clone(&observatory)).unwrap();
    let mut talk = Talk::new();

    let (heard, place) = talk.request(&[ASKED]);
    journal.tell(Entry::Heard(who(), heard));
    journal.tell(answered(place, "Two files.", vec![call("c1", "a"), call("c2", "b")]));
    journal.flush(Duration::from_secs(5));
    let pending = steps(&observatory).await;
    let status = |steps: &[Value]| -> Vec<Value> {
        steps.iter().map(|step| step["log"]["action"]["status"].clone()).collect()
    };
    assert_eq!(status(&pending), ["pending", "pending"], "{pending:#?}");
    let parent = |step: &Value| step["log"]["meta"]["parent_step_id"].clone();
    assert_eq!(parent(&pending[0]), parent(&pending[1]), "calls of one round share a parent");
    assert_eq!(pending[0]["log"]["cognition"]["intent"], "Two files.");

    let (heard, place) = talk.request(&[CALLED, FIRST, SECOND]);
    journal.tell(Entry::Heard(who(), heard.clone()));
    // The same transcript again, by a client that retries.
    journal.tell(Entry::Heard(who(), heard));
    journal.tell(answered(place, "It is in a.", Vec::new()));
    journal.flush(Duration::from_secs(5));
    let done = steps(&observatory).await;
    assert_eq!(status(&done), ["success", "failure", "success"], "{done:#?}");
    assert_eq!(done[0]["log"]["meta"]["trace_id"], pending[0]["log"]["meta"]["trace_id"]);
    assert_eq!(done[1]["log"]["action"]["tool_output_summary"], "Error: no such file");
    assert_eq!(done[2]["log"]["action"]["tool_output_summary"], "It is in a.");
}

#[tokio::test]
async fn what_retries_used_is_added_to_the_step_that_they_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let observatory = Arc::new(Observatory::open(Options::at(folder.path().join("log.db"))).unwrap());
    let calls = || vec![call("c1", "a"), call("c2", "b")];
    let journal = Journal::open(Arc::clone(&observatory)).unwrap();
    for _ in 0..3 {
        journal.tell(answered(0, "Two files.", calls()));
    }
    journal.flush(Duration::from_secs(5));
    drop(journal);
    // A clerk who knows nothing of the session, as after a restart.
    let journal = Journal::open(Arc::clone(&observatory)).unwrap();
    journal.tell(answered(0, "Two files.", calls()));
    // The same question, answered with a known call and one that is new; and with words alone.
    journal.tell(answered(0, "Two files.", vec![call("c1", "a"), call("c3", "c")]));
    for _ in 0..2 {
        journal.tell(answered(2, "Done.", Vec::new()));
    }
    journal.flush(Duration::from_secs(5));
    let used = |steps: &[Value], field: &str| -> Vec<Value> {
        steps.iter().map(|step| step[field].clone()).collect()
    };
    let steps = steps(&observatory).await;
    assert_eq!(used(&steps, "tokens"), [60, 0, 0, 24], "{steps:#?}");
    assert_eq!(used(&steps, "cost_usd"), [2.5, 0.0, 0.0, 1.0]);
    let session = observed(&observatory, "sessions/run-17").await;
    assert_eq!((&session["tokens"], &session["cost_usd"]), (&Value::from(84), &Value::from(3.5)));
    let cost = observed(&observatory, "cost?by=session").await;
    assert_eq!(cost["total"]["tokens"], 84, "{cost}");
    let then = observed(&observatory, "sessions/run-17/steps?at=4").await;
    assert_eq!((&then["tokens"], &then["cost_usd"]), (&Value::from(84), &Value::from(3.5)));
}

#[tokio::test]
async fn what_ran_at_the_provider_is_written_once_and_so_is_what_was_said_and_called_behind_it() {
    let ran =
        |result: Option<&str>| Ran { result: result.map(str::to_owned), failed: false, ..ran_of("fetch") };
    for (text, calls, results, expected) in [
        ("Done.", vec![], vec![Some("a page")], vec!["success", "success"]),
        (
            "Let me see.",
            vec![call("c1", "a")],
            vec![Some("a page"), None],
            vec!["success", "skipped", "success"],
        ),
        ("", vec![], vec![Some("Error: no such page")], vec!["failure"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let observatory = Arc::new(Observatory::open(Options::at(folder.path().join("log.db"))).unwrap());
        let journal = Journal::open(Arc::clone(&observatory)).unwrap();
        let mut talk = Talk::new();
        let (heard, position) = talk.request(&[ASKED]);
        journal.tell(Entry::Heard(who(), heard));
        let answer = Answer {
            text: text.to_owned(),
            calls,
            ran: results.into_iter().map(ran).collect(),
            ..Answer::default()
        };
        talk.loops.keep_answer(answer.clone());
        let answered = Answered { position, answer, tokens: 12, cost_micros: 0, is_given_again: false };
        journal.tell(Entry::Answered(who(), Box::new(answered)));
        let (heard, _) = talk.request(&[FIRST, ASKED]);
        journal.tell(Entry::Heard(who(), heard));
        journal.flush(Duration::from_secs(5));
        let steps = steps(&observatory).await;
        let status: Vec<&Value> = steps.iter().map(|step| &step["log"]["action"]["status"]).collect();
        assert_eq!(status, expected, "{text}: {steps:#?}");
        assert_eq!(observed(&observatory, "sessions/run-17").await["tokens"], 12);
    }
}

fn ran_of(tool: &str) -> Ran {
    Ran { tool: tool.to_owned(), args: Some(r#"{"page":"start"}"#.to_owned()), result: None, failed: false }
}

#[tokio::test]
async fn a_transcript_that_is_read_again_from_the_start_writes_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let observatory = Arc::new(Observatory::open(Options::at(folder.path().join("log.db"))).unwrap());
    for _ in 0..2 {
        // A clerk who knows nothing of the session, as after a restart.
        let journal = Journal::open(Arc::clone(&observatory)).unwrap();
        let (heard, place) = Talk::new().request(&[ASKED, CALLED, FIRST, SECOND]);
        journal.tell(Entry::Heard(who(), heard));
        journal.tell(answered(place, "It is in a.", Vec::new()));
        journal.flush(Duration::from_secs(5));
    }
    assert_eq!(steps(&observatory).await.len(), 3);
}

#[tokio::test]
async fn answers_to_different_questions_of_one_session_are_steps_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let observatory = Arc::new(Observatory::open(Options::at(folder.path().join("log.db"))).unwrap());
    let asked = |anchor| Who { anchor, ..who() };
    let done = |anchor| {
        let answer = Answer { text: "Done.".to_owned(), ..Answer::default() };
        let (tokens, cost_micros) = (12, 0);
        let answered = Answered { position: 1, answer, tokens, cost_micros, is_given_again: false };
        Entry::Answered(asked(anchor), Box::new(answered))
    };
    for _ in 0..2 {
        // A clerk who knows nothing of the session, as after a restart.
        let journal = Journal::open(Arc::clone(&observatory)).unwrap();
        for anchor in 1..=3 {
            let (heard, _) = Talk::new().request(&[ASKED]);
            journal.tell(Entry::Heard(asked(anchor), heard));
            journal.tell(done(anchor));
        }
        journal.flush(Duration::from_secs(5));
    }
    assert_eq!(steps(&observatory).await.len(), 3, "each is told once, however often it is asked");
}

#[test]
fn what_is_too_long_or_no_json_is_kept_as_a_string() {
    assert_eq!(&*super::input(r#"{"a":1}"#), r#"{"a":1}"#);
    assert_eq!(&*super::input("rm -rf"), r#""rm -rf""#);
    let long = super::input(&format!(r#"{{"a":"{}"}}"#, "ä".repeat(20_000)));
    assert!(long.len() < 17_000 && serde_json::from_str::<String>(&long).is_ok());
}

#[tokio::test]
async fn calls_that_are_typed_in_words_are_written_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let observatory = Arc::new(Observatory::open(Options::at(folder.path().join("log.db"))).unwrap());
    let journal = Journal::open(Arc::clone(&observatory)).unwrap();
    let mut talk = Talk::new();
    let (heard, mut place) = talk.request(&[ASKED]);
    journal.tell(Entry::Heard(who(), heard));
    for turn in 0..3 {
        let words = format!("I look.\n```bash\nls {turn}\n```");
        journal.tell(answered(place, &words, Vec::new()));
        let said = serde_json::json!({"role": "assistant", "content": words}).to_string();
        let result = format!(r#"{{"role":"user","content":"Observation: {turn} files"}}"#);
        let (heard, next) = talk.request(&[&said, &result]);
        journal.tell(Entry::Heard(who(), heard));
        place = next;
    }
    journal.flush(Duration::from_secs(5));
    let steps = steps(&observatory).await;
    let told: Vec<_> = steps
        .iter()
        .map(|step| (step["log"]["action"]["tool_call"].clone(), step["log"]["action"]["status"].clone()))
        .collect();
    // What the first words were is known when they are answered; from then on they are calls.
    assert_eq!(told.len(), 3, "{steps:#?}");
    assert_eq!(
        told[1..],
        [(Value::from("bash"), Value::from("success")), (Value::from("bash"), Value::from("success"))]
    );
}

/// What a conversation has wasted in the eyes of an observatory that looks at all traffic, or only where it is told of a
/// loop. Each turn is a call of one of these files, which always say the same.
async fn wasted(files: &[&str], is_judged: bool) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::at(folder.path().join("log.db"));
    options.traffic_is_judged = is_judged;
    let observatory = Arc::new(Observatory::open(options).unwrap());
    let journal = Journal::open(Arc::clone(&observatory)).unwrap();
    let mut talk = Talk::new();
    let mut more = vec![ASKED.to_owned()];
    for (turn, file) in (0..).zip(files) {
        let messages: Vec<&str> = more.iter().map(String::as_str).collect();
        let (heard, place) = talk.request(&messages);
        journal.tell(Entry::Heard(who(), heard));
        let has_looped = talk.loops.has_looped();
        journal.tell(Entry::Judged(who(), Judged { has_looped, findings: Vec::new(), verdict: None }));
        let id = format!("c{turn}");
        journal.tell(answered(place, "", vec![call(&id, file)]));
        more = vec![
            format!(
                r#"{{"role":"assistant","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"{file}\"}}"}}}}]}}"#
            ),
            format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"all that stands in {file}"}}"#),
        ];
    }
    journal.flush(Duration::from_secs(5));
    observed(&observatory, "sessions/run-17").await["wasted"].clone()
}

#[tokio::test]
async fn waste_is_the_same_whether_all_traffic_is_looked_at_or_only_that_with_loops() {
    let runs: [&[&str]; 6] = [
        &["a", "b", "c", "d", "e", "f"],
        &["a", "a", "a", "a", "b", "c"],
        &["a", "b", "a", "b", "a", "b", "a", "b", "c"],
        &["x", "a", "b", "c", "a", "b", "c", "a", "b", "c", "a", "b", "c", "y"],
        &["a", "b", "c", "a", "d", "a", "e", "a", "f", "g"],
        &["a", "a", "a", "b", "c", "d", "e", "e", "e", "e", "f"],
    ];
    let mut total = 0;
    for run in runs {
        let all = wasted(run, false).await;
        assert_eq!(wasted(run, true).await, all, "{run:?}");
        total += all["steps"].as_u64().unwrap();
    }
    assert!(total > 0, "some of them are loops");
}
