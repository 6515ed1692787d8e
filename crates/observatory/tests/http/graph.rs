//! Who led to what.

use loopbreaker_observatory::Topic;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{Server, behind, id, in_session, log};

fn edges(server: &Server, session: &str) -> Vec<(String, String)> {
    let (_, graph) = server.get(&format!("/sessions/{session}/graph"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let edges = graph["edges"].as_array().unwrap();
    let mut edges: Vec<_> = edges.iter().map(|edge| (text(&edge["from"]), text(&edge["to"]))).collect();
    edges.sort();
    edges
}

fn expected(edges: &[(u32, u32)]) -> Vec<(String, String)> {
    let mut edges: Vec<_> = edges.iter().map(|(from, to)| (id(*from), id(*to))).collect();
    edges.sort();
    edges
}

#[test]
fn forks_and_chains_are_drawn_as_they_are() {
    let server = Server::start();
    for log in [log(1), behind(2, 1), behind(3, 1), behind(4, 3)] {
        server.accept(&log);
    }
    assert_eq!(edges(&server, &id(1)), expected(&[(1, 2), (1, 3), (3, 4)]));
}

#[test]
fn a_child_before_its_parent_waits_then_hangs_under_the_root_then_moves() {
    let server = Server::start();
    let mut child = in_session(3, "run");
    child["meta"]["parent_step_id"] = id(2).into();
    server.accept(&in_session(1, "run"));
    server.accept(&child);
    assert_eq!(edges(&server, "run"), []);
    server.pass(30_000);
    assert_eq!(edges(&server, "run"), expected(&[(1, 3)]));
    let (_, graph) = server.get("/sessions/run/graph");
    assert_eq!(graph["nodes"][1]["orphan"], true);
    server.accept(&behind(2, 1));
    assert_eq!(edges(&server, "run"), expected(&[(1, 2), (2, 3)]));
    let (_, graph) = server.get("/sessions/run/graph");
    assert!(graph["nodes"].as_array().unwrap().iter().all(|node| node["orphan"] == false));
}

#[test]
fn a_step_that_stays_an_orphan_is_told_once() {
    let server = Server::start();
    server.accept(&behind(2, 1));
    server.pass(30_000);
    let mut listener = server.observatory.subscribe(vec![Topic::Graph], None, Some(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = runtime.block_on(async {
        listener.next().await;
        listener.next().await
    });
    assert_eq!(told.body()["node"], json!({ "trace_id": id(2), "orphan": true }));
}

#[test]
fn a_cycle_is_refused_at_any_depth() {
    let server = Server::start();
    let (status, answer) = server.post("/decision-logs", &behind(1, 1));
    assert_eq!((status, &answer["error"]), (409, &json!("cycle")));
    // 2 → 3 → … → 200 → 2: each comes before its parent.
    for number in 2..200 {
        server.accept(&behind(number, number + 1));
    }
    let (_, sessions) = server.get("/sessions");
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "they wait together");
    let (status, answer) = server.post("/decision-logs", &behind(200, 2));
    assert_eq!((status, &answer["error"]), (409, &json!("cycle")));
    server.accept(&log(200));
    let (_, session) = server.get(&format!("/sessions/{}", id(200)));
    assert_eq!(session["steps"], 199);
}

#[test]
fn hand_offs_are_counted_with_their_latency() {
    let server = Server::start();
    let by = |number: u32, parent: u32, agent: &str, at: &str| {
        let mut log = behind(number, parent);
        log["identity"]["agent_id"] = agent.into();
        log["meta"]["timestamp"] = at.into();
        log
    };
    server.accept(&log(1));
    server.accept(&by(2, 1, "b", "2026-02-21T10:00:01Z"));
    server.accept(&by(4, 3, "c", "2026-02-21T10:00:09Z"));
    server.accept(&by(3, 1, "b", "2026-02-21T10:00:03Z"));
    let (_, topology) = server.get("/topology");
    let edge = |from: &str, to: &str| {
        let edges = topology["edges"].as_array().unwrap();
        let found = edges.iter().find(|edge| edge["from"] == from && edge["to"] == to).unwrap();
        (found["count"].clone(), found["latency_ms"].clone())
    };
    assert_eq!(edge("a", "b"), (json!(2), json!(2_000)));
    assert_eq!(edge("b", "c"), (json!(1), json!(6_000)), "found when the parent came");
    assert_eq!(topology["nodes"].as_array().unwrap().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_the_same_in_whatever_order_its_steps_come(
        parents in prop::collection::vec(any::<prop::sample::Index>(), 1..12), seed in any::<u64>()
    ) {
        let server = Server::start();
        let mut logs = vec![log(0)];
        let mut tree = Vec::new();
        for (index, parent) in parents.iter().enumerate() {
            let (number, parent) = (index as u32 + 1, parent.index(index + 1) as u32);
            logs.push(behind(number, parent));
            tree.push((parent, number));
        }
        // Any order will do, as long as the seed decides it.
        logs.sort_by_key(|log| loopbreaker_record::TraceId::derived(&[log.to_string().as_bytes(), &seed.to_le_bytes()]));
        for log in &logs {
            server.accept(log);
        }
        prop_assert_eq!(edges(&server, &id(0)), expected(&tree));
        let (_, sessions) = server.get("/sessions");
        prop_assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "all of them are one session");
        prop_assert_eq!(&sessions["sessions"][0]["steps"], logs.len());
    }
}
