//! Clients that leave their history to the provider, and name it from wherever they are sent to.

use loopbreaker_mock::{Mock, Turn};
use serde_json::{Value, json};

use super::{gateways_before, is_whole, seen};
use crate::lab::{Bench, Lab, until};
use crate::redis::Redis;

/// How the client names what came before.
#[derive(Debug, Clone, Copy)]
enum By {
    Answer,
    Conversation,
}

/// An agent that makes the same call again and again.
struct Agent<'l> {
    labs: &'l [Lab],
    by: By,
    body: Value,
    /// Beside the usual ones.
    headers: Vec<(&'static str, &'static str)>,
    /// What its session was called last.
    session: String,
    turn: usize,
}

impl<'l> Agent<'l> {
    fn new(labs: &'l [Lab], by: By) -> Self {
        let body = json!({ "model": "gpt-4o", "input": "fix it" });
        let mut agent = Self { labs, by, body, headers: Vec::new(), session: String::new(), turn: 0 };
        agent.name(&json!("none"));
        agent
    }

    fn name(&mut self, answer: &Value) {
        match self.by {
            By::Answer if answer == "none" => {}
            By::Answer => self.body["previous_response_id"] = answer.clone(),
            By::Conversation => self.body["conversation"] = "conv_1".into(),
        }
    }

    /// One turn at the gateway whose turn it is. An agent that was refused comes back as it is.
    fn go_on(&mut self) -> (u16, String, String) {
        let lab = &self.labs[self.turn % self.labs.len()];
        self.turn += 1;
        let usual = [("authorization", "Bearer sk-test"), ("content-type", "application/json")];
        let headers = [&usual[..], &self.headers].concat();
        let reply = lab.post("/v1/responses", &headers, self.body.to_string());
        if reply.status == 200 {
            let answer = reply.json();
            let items = answer["output"].as_array().unwrap();
            let call = items.iter().find(|item| item["type"] == "function_call").unwrap();
            let output =
                json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "a b" });
            self.body["input"] = json!([output]);
            self.name(&answer["id"]);
        }
        reply.header("x-loopbreaker-session").unwrap_or_default().clone_into(&mut self.session);
        seen(&reply)
    }
}

/// A provider whose model wants to see the same folder each time.
fn provider() -> Mock {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    mock.script([Turn::call("bash", r#"{"command":"ls"}"#)]);
    mock
}

/// Everything that is kept of histories, as one word.
fn windows(redis: &Redis) -> String {
    let script = "local all = redis.call('KEYS', 'lb:*:v:*') table.sort(all) \
                  for at, key in ipairs(all) do all[at] = key .. redis.call('GET', key) end \
                  return redis.sha1hex(table.concat(all))";
    redis.command(&["EVAL", script, "0"])
}

#[test]
fn a_loop_in_a_history_that_the_provider_keeps_is_found_by_three_exactly_as_by_one() {
    for by in [By::Answer, By::Conversation] {
        let (mock, redis) = (provider(), Redis::start());
        let one = [Bench::new().upstream(mock.url()).start()];
        let mut agent = Agent::new(&one, by);
        let alone: Vec<_> = (0..12).map(|_| agent.go_on()).collect();
        assert!(alone.iter().any(|(status, ..)| *status == 429), "{by:?}: {alone:?}");

        let three = gateways_before(&redis.url(), "", &mock.url());
        let (mut agent, mut kept) = (Agent::new(&three, by), windows(&redis));
        let together = (0..12).map(|_| {
            let turn = agent.go_on();
            if turn.0 == 200 && matches!(by, By::Conversation) {
                // It is written when the answer is over, and who names no answer cannot wait for that.
                until("what led to the answer is known to all", || {
                    let now = windows(&redis);
                    std::mem::replace(&mut kept, now.clone()) != now
                });
            }
            turn
        });
        assert_eq!(together.collect::<Vec<_>>(), alone, "{by:?}");
    }
}

#[test]
fn a_session_that_is_named_in_its_first_request_keeps_its_name_at_every_gateway() {
    let (mock, redis) = (provider(), Redis::start());
    let policy = "policies: [{ id: p, spec: { rules: [{ id: r, key: session, requests: 4 }] } }]";
    let one = [Bench::new().upstream(mock.url()).config(policy).start()];
    let three = gateways_before(&redis.url(), policy, &mock.url());
    for labs in [&one[..], &three[..]] {
        let mut by_header = Agent::new(labs, By::Answer);
        by_header.headers.push(("x-session-id", "run-17"));
        let mut by_field = Agent::new(labs, By::Answer);
        by_field.body["metadata"] = json!({ "session_id": "run-18" });
        for (mut agent, name) in [(by_header, "run-17"), (by_field, "run-18")] {
            for turn in 0..4 {
                assert_eq!(agent.go_on().0, 200, "{name}, turn {turn} of {}", labs.len());
                assert_eq!(agent.session, name, "turn {turn} of {}", labs.len());
                agent.headers.clear();
                agent.body.as_object_mut().unwrap().remove("metadata");
            }
            assert_eq!(agent.go_on().0, 429, "it has one budget: {name} of {}", labs.len());
        }
    }
}

#[test]
fn redis_that_dies_in_the_middle_of_such_a_history_costs_no_request_and_each_goes_on_with_its_own() {
    let (mock, mut redis) = (provider(), Redis::start());
    let labs = gateways_before(&redis.url(), "", &mock.url());
    let mut agent = Agent::new(&labs, By::Answer);
    assert_eq!([agent.go_on().0, agent.go_on().0], [200, 200]);
    redis.kill();
    for turn in 0..6 {
        let (status, verdict, _) = agent.go_on();
        assert_eq!(status, 200, "turn {turn}: {verdict}");
    }
    // One of them alone sees what passes through it.
    agent.labs = &labs[..1];
    until("its own memory shows the loop", || agent.go_on().0 == 429);

    redis.start_again();
    for lab in &labs {
        until("it has found Redis again", || is_whole(lab));
    }
    let mut agent = Agent::new(&labs, By::Answer);
    until("a loop over all of them is found again", || agent.go_on().0 == 429);
}
