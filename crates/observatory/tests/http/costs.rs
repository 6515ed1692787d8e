//! Numbers: overview, lists, costs, topology.

use loopbreaker_record::DecisionLog;
use serde_json::{Value, json};

use crate::server::{Server, behind, in_session};

fn costly(number: u32, session: &str, agent: &str, cost: f64) -> Value {
    let mut log = in_session(number, session);
    log["identity"]["agent_id"] = agent.into();
    log["identity"]["capability_version"] = "2.0.0".into();
    log["extensions"] = json!({ "model": "large" });
    log["action"]["tool_call"] = "bash".into();
    log["state_delta"] = json!({ "cumulative_session_cost": cost, "tokens_consumed": 10 });
    log
}

#[test]
fn the_first_screen_counts_sessions_speed_and_money() {
    let server = Server::start();
    for number in 0..5 {
        let mut log = in_session(number, "loop");
        log["cognition"]["intent"] = "again".into();
        server.accept(&log);
    }
    server.accept(&costly(10, "fine", "a", 0.5));
    let mut last = in_session(11, "over");
    last["control"] = json!({ "is_terminal": true });
    server.accept(&last);
    server.post("/sessions/fine/pause", &json!({}));
    let (status, overview) = server.get("/overview");
    assert_eq!(status, 200, "{overview}");
    assert_eq!(
        overview["sessions"],
        json!({ "active": 0, "warning": 0, "loop": 1, "paused": 1, "ended": 1 })
    );
    assert_eq!((&overview["loops_open"], &overview["calls_per_second"]), (&json!(1), &json!(0.7)));
    assert_eq!(overview["cost_per_minute_usd"], 0.5);
    assert_eq!((&overview["saved_today"], &overview["degraded"]), (&Value::Null, &json!([])));
    server.pass(3_600_000);
    assert_eq!(server.get("/overview").1["calls_per_second"], 0.0);
    assert_eq!(server.get("/overview?since=yesterday").0, 400);
}

#[test]
fn sessions_are_ordered_counted_and_shown_with_their_scores_and_alert() {
    let server = Server::start();
    for (index, cost) in [3.0, 1.0, 2.0].into_iter().enumerate() {
        server.accept(&costly(index as u32, &format!("run-{index}"), "a", cost));
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, page) = server.get(&format!("/sessions?sort=cost&limit=2&cursor={cursor}"));
        assert_eq!(page["total"], 3);
        seen.extend(page["sessions"].as_array().unwrap().iter().map(|session| session["session_id"].clone()));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen, ["run-0", "run-2", "run-1"]);
    assert_eq!(server.get("/sessions?sort=colour").0, 400);
    assert_eq!(server.get("/sessions?q=100%25").1["total"], 0, "a sign of a pattern is a letter here");
    assert_eq!(server.get("/sessions?state=live").1["total"], 3);
    for number in 10..15 {
        let mut log = in_session(number, "run-1");
        log["cognition"]["intent"] = "again".into();
        server.accept(&log);
    }
    let (_, sessions) = server.get("/sessions?sort=loop_score&limit=1");
    let worst = &sessions["sessions"][0];
    assert_eq!(worst["entropy_history"], json!([1.0, 1.0, 0.6667, 0.5, 0.4, 0.2]));
    assert_eq!(worst["alert"]["occurrence_count"], 5);
    assert_eq!(worst["alert"]["since"], "2026-02-21T10:00:00.000Z");
    assert_eq!(worst["wasted"], json!({ "steps": 0, "tokens": 0, "cost_usd": 0.0 }));
}

#[test]
fn sums_of_money_show_no_rounding_error() {
    let server = Server::start();
    for (number, cost) in [(1, 0.1), (2, 0.3), (3, 0.6)] {
        server.accept(&costly(number, "run", "a", cost));
    }
    let (_, steps) = server.get("/sessions/run/steps");
    let costs: Vec<&Value> =
        steps["steps"].as_array().unwrap().iter().map(|step| &step["cost_usd"]).collect();
    assert_eq!(costs, [0.1, 0.2, 0.3]);
    assert_eq!(server.get("/sessions/run").1["cost_usd"], 0.6);
    assert_eq!(server.get("/cost?from=0").1["total"]["cost_usd"], 0.6);
    assert_eq!(server.get("/sessions/run/steps?at=2").1["cost_usd"], 0.3);
    assert_eq!(server.get("/topology").1["nodes"][0]["cost_usd"], 0.6);
}

#[test]
fn costs_can_be_summed_by_anything_and_drilled_into() {
    let server = Server::start();
    server.accept(&costly(1, "one", "a", 1.0));
    server.accept(&costly(2, "one", "b", 1.5));
    server.accept(&costly(3, "two", "a", 4.0));
    let sums = |query: &str| -> Vec<(String, f64)> {
        let (_, cost) = server.get(&format!("/cost?from=0&bucket=1d&{query}"));
        let cells = cost["cells"].as_array().unwrap();
        cells
            .iter()
            .map(|cell| (cell["key"].as_str().unwrap().to_owned(), cell["cost_usd"].as_f64().unwrap()))
            .collect()
    };
    let named = |name: &str, cost: f64| (name.to_owned(), cost);
    assert_eq!(sums("by=agent"), [named("a", 5.0), named("b", 0.5)]);
    assert_eq!(sums("by=session"), [named("one", 1.5), named("two", 4.0)]);
    assert_eq!(sums("by=tool"), [named("bash", 5.5)]);
    assert_eq!(sums("by=model"), [named("large", 5.5)]);
    assert_eq!(sums("by=session&agent=a"), [named("one", 1.0), named("two", 4.0)]);
    let (_, cost) = server.get("/cost?from=0");
    assert_eq!((&cost["total"]["tokens"], &cost["total"]["steps"]), (&json!(30), &json!(3)));
    assert_eq!(cost["bucket_ms"], 3_600_000);
    assert_eq!(server.get("/cost?by=colour").0, 400);
}

#[test]
fn an_agent_that_claims_too_many_tokens_spoils_no_sum() {
    let server = Server::start();
    let logs: Vec<Value> = (0..1_000)
        .map(|number| {
            let mut log = costly(number, "run", "a", 1.0);
            log["state_delta"]["tokens_consumed"] = DecisionLog::MAX_TOKENS.into();
            log
        })
        .collect();
    for logs in [&logs[..500], &logs[500..]] {
        assert_eq!(server.post("/decision-logs", &json!(logs)).0, 200);
    }
    for number in 1_000..1_050 {
        let mut log = costly(number, "run", "a", 1.0);
        log["state_delta"]["tokens_consumed"] = DecisionLog::MAX_TOKENS.into();
        server.accept(&log);
    }
    let (status, cost) = server.get("/cost?from=0");
    assert_eq!((status, &cost["total"]["steps"]), (200, &json!(1_050)), "{cost}");
    let (status, map) = server.get("/topology");
    assert_eq!((status, &map["nodes"][0]["steps"]), (200, &json!(1_050)), "{map}");
    assert!(map["nodes"][0]["tokens"].as_i64() > Some(0), "{map}");
    assert_eq!(server.get("/sessions/run").0, 200);
}

#[test]
fn the_map_shows_what_each_agent_does_and_costs() {
    let server = Server::start();
    server.accept(&costly(1, "run", "a", 1.0));
    let mut wrong = costly(2, "run", "b", 1.0);
    server.accept(&wrong);
    wrong["action"]["status"] = "odd".into();
    assert_eq!(server.post("/decision-logs", &wrong).0, 422);
    let mut handed = behind(3, 2);
    handed["identity"]["agent_id"] = "a".into();
    server.accept(&handed);
    let (_, map) = server.get("/topology");
    let node = |agent: &str| {
        let nodes = map["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["agent_id"] == agent).unwrap().clone()
    };
    assert_eq!((&node("a")["state"], &node("a")["cost_usd"]), (&json!("active"), &json!(1.0)));
    assert_eq!((&node("b")["state"], &node("b")["violations"]), (&json!("violation"), &json!(1)));
    assert_eq!((&map["edges"][0]["session_id"], &map["edges"][0]["loop"]), (&json!("run"), &json!(false)));
    assert_eq!(server.get("/violations").1["violations"][0]["agent_id"], "b");
    server.pass(61_000);
    assert_eq!(server.get("/topology").1["nodes"][0]["state"], "idle");
    server.pass(15 * 60_000);
    assert_eq!(server.get("/topology").1["nodes"][0]["state"], "dead");
}

#[test]
fn steps_can_be_listed_in_brief_and_looked_at_in_full() {
    let server = Server::start();
    for number in 0..3 {
        let mut log = costly(number, "run", "a", f64::from(number));
        log["action"]["tool_output_summary"] = "x".repeat(1_000).into();
        log["state_delta"]["added_to_memory"] = json!([format!("fact {number}")]);
        server.accept(&log);
    }
    let (_, brief) = server.get("/sessions/run/steps?brief=1&limit=2000");
    let row = &brief["steps"][2];
    assert_eq!((&row["step"], &row["cut"], &row["tokens"]), (&json!(3), &json!(true), &json!(10)));
    assert_eq!(row["log"]["action"]["tool_output_summary"].as_str().unwrap().len(), 300);
    let (_, at) = server.get("/sessions/run/steps?at=2");
    assert_eq!(at["row"]["log"]["action"]["tool_output_summary"].as_str().unwrap().len(), 1_000);
    assert_eq!((&at["memory_added"], &at["entropy_score"]), (&json!(["fact 1"]), &json!(1.0)));
    let (_, graph) = server.get("/sessions/run/graph");
    assert_eq!((&graph["nodes"][1]["step"], &graph["nodes"][1]["cost_usd"]), (&json!(2), &json!(1.0)));
    let (_, found) = server.get("/search?q=fact");
    assert_eq!(found["results"], json!([]), "memory is not searched");
    assert_eq!(server.get("/search?agent=a&limit=1").1["results"][0]["step"], 3);
}

#[test]
fn a_saved_search_can_be_dropped() {
    let server = Server::start();
    server.post("/searches", &json!({ "name": "mine", "query": "q=a" }));
    let (status, left) = server.call("DELETE", "/searches?name=mine", &[], "");
    assert_eq!((status, &left["searches"]), (200, &json!([])));
    let long = json!({ "name": "mine", "query": "x".repeat(2_001) });
    assert_eq!(server.post("/searches", &long).0, 422);
}
