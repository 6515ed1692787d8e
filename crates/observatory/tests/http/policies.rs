//! Policies: listed, tried, changed above their file.

use std::sync::{Arc, Mutex};

use loopbreaker::{Action, DetectorsConfig, Ladder};
use loopbreaker_observatory::Policies;
use serde_json::{Value, json};

use crate::server::{Server, in_session};

/// Stands for a gateway whose policies have a ladder and nothing else.
#[derive(Default)]
pub(crate) struct Ladders {
    overrides: Mutex<Vec<(String, Value)>>,
    switches: Mutex<Vec<(String, Value)>>,
}

impl Ladders {
    pub(crate) fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// The kill switches that it was told of.
    pub(crate) fn switches(&self) -> Vec<(String, Value)> {
        self.switches.lock().unwrap().clone()
    }

    /// What the gateway was told.
    pub(crate) fn overrides(&self) -> Vec<(String, Value)> {
        self.overrides.lock().unwrap().clone()
    }
}

impl Policies for Ladders {
    fn list(&self) -> Value {
        let overrides = self.overrides();
        let spec = overrides.iter().find(|(id, _)| id == "default").map(|(_, spec)| spec.clone());
        let spec = spec.unwrap_or_else(|| json!({ "ladder": ["hint", "reject"] }));
        let own = json!({ "id": null, "key": "tenant", "value": "bad", "path": null, "reason": null,
            "expires_at": null, "on": true, "source": "file" });
        let thrown = self.switches().into_iter().map(|(id, switch)| {
            let mut shown = own.clone();
            (shown["id"], shown["source"]) = (id.clone().into(), "override".into());
            (shown["value"], shown["reason"]) = (id.into(), switch["reason"].clone());
            shown
        });
        let switches: Vec<Value> = [own.clone()].into_iter().chain(thrown).collect();
        json!({
            "policies": [{ "id": "default", "mode": "enforce", "source": "default", "spec": spec }],
            "kill_switches": switches,
        })
    }

    fn checked_switch(&self, _: &str, switch: &Value) -> Result<Value, Vec<(String, String)>> {
        match switch.get("expires_at") {
            None => Ok(switch.clone()),
            Some(_) => Err(vec![("expires_at".to_owned(), "is no moment".to_owned())]),
        }
    }

    fn replace_switches(&self, switches: &[(String, Value)]) {
        *self.switches.lock().unwrap() = switches.to_vec();
    }

    fn checked(&self, _: &str, spec: &Value) -> Result<Value, Vec<(String, String)>> {
        self.detectors(spec).map(|_| spec.clone())
    }

    fn replace(&self, overrides: &[(String, Value)]) {
        *self.overrides.lock().unwrap() = overrides.to_vec();
    }

    fn detectors(&self, spec: &Value) -> Result<Option<DetectorsConfig>, Vec<(String, String)>> {
        if spec.get("off").is_some() {
            return Ok(None);
        }
        let rungs = spec["ladder"].as_array().into_iter().flatten();
        let rungs = rungs.map(|rung| rung.as_str().and_then(Action::parse)).collect::<Option<Vec<_>>>();
        let ladder = rungs.and_then(Ladder::new);
        let ladder = ladder.ok_or_else(|| vec![("ladder".to_owned(), "must name actions".to_owned())])?;
        Ok(Some(DetectorsConfig { ladder, ..DetectorsConfig::default() }))
    }
}

fn looping(server: &Server, session: &str, first: u32, steps: u32) {
    for number in first..first + steps {
        let mut log = in_session(number, session);
        log["action"] = json!({
            "tool_call": "bash", "tool_input": { "command": "make" }, "tool_output_summary": "1 error",
            "status": "failure",
        });
        server.accept(&log);
    }
}

#[test]
fn without_a_gateway_there_are_none() {
    let server = Server::start();
    assert_eq!(server.get("/policies").1, json!({ "policies": [] }));
    assert_eq!(server.get("/budgets").1, json!({ "budgets": [] }));
    assert_eq!(server.call("PUT", "/policies/default", &[], r#"{"mode":"off"}"#).0, 503);
    assert_eq!(server.post("/policies/try", &json!({ "policy": {} })).0, 503);
}

#[test]
fn a_change_is_tried_on_recorded_sessions_before_it_is_saved() {
    let server = Server::start();
    server.observatory.govern(Ladders::shared());
    looping(&server, "loop", 0, 6);
    for number in 100..104 {
        server.accept(&in_session(number, "fine"));
    }
    let policy = json!({ "id": "default", "spec": { "ladder": ["hint", "pause"] } });
    let (status, tried) = server.post("/policies/try", &json!({ "policy": policy, "last": 10 }));
    assert_eq!(status, 200, "{tried}");
    assert_eq!((&tried["sessions"], &tried["steps"]), (&json!(2), &json!(6)));
    let fired: Vec<(i64, i64, &str, &str)> = tried["fired"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| {
            let (step, count) = (at["step"].as_i64().unwrap(), at["count"].as_i64().unwrap());
            (step, count, at["kind"].as_str().unwrap(), at["action"].as_str().unwrap())
        })
        .collect();
    let at = |step: i64| (step, step, "failing_repeat", if step == 3 { "hint" } else { "pause" });
    assert_eq!(fired, [3, 4, 5, 6].map(at), "each with the count of its own step");
    let session =
        json!({ "session_id": "loop", "tenant": "anonymous", "steps": 6, "would": "pause", "did": null });
    assert_eq!(tried["by_session"], json!([session]));
    assert_eq!(tried["summary"], json!({ "would": { "hint": 1, "pause": 3 }, "did": {} }));
    assert_eq!(tried["fired"][0]["session_id"], "loop");
    assert_eq!(tried["fired"][0]["trace_id"], crate::server::id(2));
    let (_, nothing) = server.post("/policies/try", &json!({ "policy": { "off": true } }));
    assert_eq!((&nothing["fired"], &nothing["sessions"]), (&json!([]), &json!(2)), "it looks for no loops");
    let wrong = json!({ "policy": { "ladder": ["shout"] } });
    let (status, answer) = server.post("/policies/try", &wrong);
    assert_eq!((status, &answer["violations"][0]["field"]), (422, &json!("ladder")));
    assert_eq!(server.post("/policies/try", &json!({ "policy": policy, "last": 0 })).0, 422);
    assert_eq!(server.post("/policies/try", &json!({})).0, 422);
    assert_eq!(server.get("/audit").1["entries"], json!([]), "nothing was changed");
}

#[test]
fn an_override_is_kept_shown_and_audited_until_it_is_taken_away() {
    let server = Server::start();
    let policies = Ladders::shared();
    server.observatory.govern(Arc::clone(&policies) as _);
    let put =
        |spec: &Value| server.call("PUT", "/policies/default", &[], &json!({ "spec": spec }).to_string());
    let (status, changed) = put(&json!({ "ladder": ["reject"] }));
    assert_eq!(status, 200, "{changed}");
    assert_eq!((&changed["overridden"], &changed["source"]), (&json!(true), &json!("override")));
    assert_eq!(changed["spec"]["ladder"], json!(["reject"]));
    assert_eq!(policies.overrides().len(), 1, "the gateway was told");
    assert_eq!(put(&json!({ "ladder": [] })).0, 422);
    assert_eq!(put(&json!({})).0, 422, "a policy says something");
    let other = json!({ "id": "other", "spec": { "ladder": ["reject"] } });
    let (status, refused) = server.call("PUT", "/policies/default", &[], &other.to_string());
    assert_eq!(
        (status, &refused["violations"][0]["field"]),
        (422, &json!("id")),
        "of two ids neither counts"
    );
    let (status, back) = server.call("DELETE", "/policies/default", &[], "");
    assert_eq!((status, &back["overridden"]), (200, &json!(false)));
    assert!(policies.overrides().is_empty());
    assert_eq!(server.call("DELETE", "/policies/default", &[], "").0, 404);
    let (_, audit) = server.get("/audit");
    let deeds: Vec<&Value> =
        audit["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(deeds, ["policy", "policy"]);
    let viewer = [("x-test-role", "viewer")];
    assert_eq!(server.call("PUT", "/policies/default", &viewer, "{}").0, 403);
    let (_, newest) = server.get("/audit?order=desc&limit=1");
    assert_eq!((&newest["entries"][0]["seq"], &newest["next"]), (&json!(2), &json!("2")));
}

#[test]
fn a_kill_switch_is_thrown_shown_and_audited_until_it_is_released() {
    let server = Server::start();
    assert_eq!(server.call("PUT", "/kill-switches/acme", &[], "{}").0, 503, "no gateway is there");
    assert_eq!(server.get("/kill-switches").1, json!({ "kill_switches": [] }));
    let policies = Ladders::shared();
    server.observatory.govern(Arc::clone(&policies) as _);
    let (status, thrown) = server.call("PUT", "/kill-switches/acme", &[], r#"{"reason":"runaway"}"#);
    assert_eq!(status, 200, "{thrown}");
    assert_eq!((&thrown["id"], &thrown["reason"]), (&json!("acme"), &json!("runaway")));
    assert_eq!(policies.switches(), [("acme".to_owned(), json!({ "reason": "runaway" }))]);
    let (_, listed) = server.get("/kill-switches");
    let sources: Vec<&Value> =
        listed["kill_switches"].as_array().unwrap().iter().map(|switch| &switch["source"]).collect();
    assert_eq!(sources, ["file", "override"]);

    let (status, answer) = server.call("PUT", "/kill-switches/x", &[], r#"{"expires_at":"soon"}"#);
    assert_eq!((status, &answer["violations"][0]["field"]), (422, &json!("expires_at")));
    let viewer = [("x-test-role", "viewer")];
    for method in ["PUT", "DELETE"] {
        assert_eq!(server.call(method, "/kill-switches/acme", &viewer, "{}").0, 403);
    }
    assert_eq!(policies.switches().len(), 1);

    let (status, released) = server.call("DELETE", "/kill-switches/acme", &[], "");
    assert_eq!((status, released), (200, json!({ "id": "acme", "released": true })));
    assert!(policies.switches().is_empty());
    assert_eq!(server.call("DELETE", "/kill-switches/acme", &[], "").0, 404);
    let (status, answer) = server.call("DELETE", "/kill-switches/bad", &[], "");
    assert_eq!((status, &answer["error"]), (409, &json!("in_file")));

    let (_, audit) = server.get("/audit");
    let deeds: Vec<(&Value, &Value)> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["action"], &entry["reason"]))
        .collect();
    let deed = json!("kill_switch");
    assert_eq!(deeds, [(&deed, &json!("acme: runaway")), (&deed, &json!("acme"))]);
}

#[test]
fn what_a_policy_did_and_would_have_done_is_counted() {
    use loopbreaker_observatory::Verdict;
    let server = Server::start();
    server.observatory.govern(Ladders::shared());
    for enforced in [true, true, false] {
        server.observatory.note(Verdict {
            tenant: "anonymous".into(),
            session: "run".to_owned(),
            action: Action::Hint,
            enforced,
            policy: Some("default".to_owned()),
            kind: Some("cycle".to_owned()),
            message: None,
        });
    }
    server.accept(&in_session(1, "run"));
    let (_, listed) = server.get("/policies");
    assert_eq!(
        listed["policies"][0]["findings"],
        json!({ "enforced": 2, "shadow": 1, "by_kind": [{ "kind": "cycle", "enforced": 2, "shadow": 1 }] })
    );
}
