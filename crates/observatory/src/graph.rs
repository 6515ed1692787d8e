//! The causal graph of a session: who led to what.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use loopbreaker_record::{DecisionLog, TraceId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::events::{Draft, Said, Topic};
use crate::store::{KnownStep, NewStep};
use crate::writer::Scribe;

/// How long a step waits for its parent before it hangs under the root.
pub(crate) const ORPHAN_AFTER: i64 = 30_000;
/// An agent that did nothing for so long is idle.
pub(crate) const IDLE_AFTER: i64 = 60_000;
/// More steps than this are too many to draw.
pub(crate) const MAX_NODES: u32 = 10_000;

/// Nobody reads more of an intent in a graph.
pub(crate) const MAX_INTENT: usize = 300;

/// One step in the graph.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) trace_id: TraceId,
    pub(crate) parent: Option<TraceId>,
    pub(crate) agent: String,
    pub(crate) intent: String,
    pub(crate) tool: String,
    pub(crate) status: String,
    /// Its parent has not come.
    pub(crate) waiting: bool,
    pub(crate) received_at: i64,
    /// Its place in the session.
    pub(crate) number: i64,
    pub(crate) level: String,
    pub(crate) cost: f64,
    /// It is a repeat that brought nothing.
    pub(crate) redundant: bool,
}

impl Node {
    /// Whether it has waited long enough: it hangs under the root until its parent comes.
    fn is_orphan(&self, now: i64) -> bool {
        self.waiting && now - self.received_at >= ORPHAN_AFTER
    }
}

/// An event about what is new in a graph.
#[derive(Debug, Serialize)]
pub(crate) struct Grown<N> {
    pub(crate) event_type: &'static str,
    pub(crate) session_id: Box<str>,
    pub(crate) node: N,
    pub(crate) edges: Vec<Edge>,
}

/// A step that is new in a graph.
#[derive(Debug, Serialize)]
pub(crate) struct NewNode {
    pub(crate) trace_id: TraceId,
    pub(crate) parent_step_id: Option<TraceId>,
    pub(crate) agent_id: Box<str>,
    pub(crate) intent: Box<str>,
    pub(crate) tool_call: Box<str>,
    pub(crate) status: &'static str,
    pub(crate) entropy_score: Option<f64>,
    pub(crate) severity: &'static str,
    pub(crate) step: u64,
    pub(crate) orphan: bool,
    pub(crate) count: u32,
}

/// The result of a step has come.
#[derive(Debug, Serialize)]
pub(crate) struct DoneNode {
    pub(crate) trace_id: TraceId,
    pub(crate) agent_id: Box<str>,
    pub(crate) status: &'static str,
    pub(crate) severity: &'static str,
    pub(crate) entropy_score: f64,
    pub(crate) completed: bool,
}

/// One step led to another.
#[derive(Debug, Serialize)]
pub(crate) struct Edge {
    pub(crate) from: TraceId,
    pub(crate) to: TraceId,
    pub(crate) count: u32,
}

impl Scribe<'_> {
    /// Tells of a step that is new, and of what it hangs on.
    pub(crate) fn tell_graph(
        &mut self,
        tenant: &Arc<str>,
        session: &str,
        log: &DecisionLog,
        step: &NewStep<'_>,
        children: &[KnownStep],
    ) {
        let above = step.parent.filter(|_| !step.waiting).map(|from| Edge { from, to: step.trace, count: 1 });
        let below = children.iter().map(|child| Edge { from: step.trace, to: child.trace, count: 1 });
        let node = NewNode {
            trace_id: step.trace,
            parent_step_id: step.parent,
            agent_id: step.agent.into(),
            intent: start_of(&log.cognition.intent, MAX_INTENT).into(),
            tool_call: step.tool.into(),
            status: step.status,
            entropy_score: log.cognition.entropy_score,
            severity: step.level,
            step: step.number,
            orphan: false,
            count: 1,
        };
        let edges = above.into_iter().chain(below).collect();
        self.tell_grown(tenant, session, node, edges);
    }

    /// Tells that the graph of a session is another by now.
    pub(crate) fn tell_grown(
        &mut self,
        tenant: &Arc<str>,
        session: &str,
        node: impl Serialize + Debug + Send + Sync + 'static,
        edges: Vec<Edge>,
    ) {
        let grown = Grown { event_type: "graph", session_id: session.into(), node, edges };
        let (tenant, body) = (Some(Arc::clone(tenant)), Said::later(grown));
        self.drafts.push(Draft { topic: Topic::Graph, kind: "graph", tenant, body, order: None });
    }
}

/// Nodes and edges. A node's `count` is how many steps of the session do the same, so that repeats can be drawn as one.
pub(crate) fn drawn(nodes: &[Node], now: i64) -> Value {
    let same =
        |node: &Node| (node.agent.clone(), node.intent.clone(), node.tool.clone(), node.status.clone());
    let mut counts = HashMap::new();
    for node in nodes {
        *counts.entry(same(node)).or_insert(0_u32) += 1;
    }
    let root = nodes.iter().find(|node| node.parent.is_none()).or(nodes.first()).map(|node| node.trace_id);
    let mut edges = Vec::new();
    let mut drawn = Vec::new();
    for node in nodes {
        let orphan = node.is_orphan(now);
        drawn.push(json!({
            "trace_id": node.trace_id,
            "parent_step_id": node.parent,
            "agent_id": node.agent,
            "intent": start_of(&node.intent, MAX_INTENT),
            "tool_call": node.tool,
            "status": node.status,
            "step": node.number,
            "severity": node.level,
            "cost_usd": node.cost,
            "redundant": node.redundant,
            "orphan": orphan,
            "count": counts.get(&same(node)),
        }));
        let from = if orphan { root } else { node.parent.filter(|_| !node.waiting) };
        if let Some(from) = from.filter(|from| *from != node.trace_id) {
            edges.push(json!({ "from": from, "to": node.trace_id, "count": 1 }));
        }
    }
    let truncated = nodes.len() >= MAX_NODES as usize;
    json!({ "nodes": drawn, "edges": edges, "truncated": truncated })
}

/// The beginning of a text, at most this many bytes of it.
pub(crate) fn start_of(text: &str, max: usize) -> &str {
    let end = (0..=text.len().min(max)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use loopbreaker_record::TraceId;

    use super::{Node, ORPHAN_AFTER, drawn};

    fn node(id: u8, parent: Option<u8>, waiting: bool) -> Node {
        Node {
            trace_id: TraceId::from_random_bytes([id; 16]),
            parent: parent.map(|parent| TraceId::from_random_bytes([parent; 16])),
            agent: "a".to_owned(),
            intent: "build".to_owned(),
            tool: "make".to_owned(),
            status: "failure".to_owned(),
            waiting,
            received_at: 1_000,
            number: id.into(),
            level: "normal".to_owned(),
            cost: 0.0,
            redundant: false,
        }
    }

    #[test]
    fn a_child_without_its_parent_waits_and_then_hangs_under_the_root() {
        let nodes = [node(1, None, false), node(2, Some(9), true)];
        let early = drawn(&nodes, 1_000 + ORPHAN_AFTER - 1);
        assert_eq!(early["edges"].as_array().unwrap().len(), 0);
        assert_eq!(early["nodes"][1]["orphan"], false);
        let late = drawn(&nodes, 1_000 + ORPHAN_AFTER);
        assert_eq!(late["nodes"][1]["orphan"], true);
        assert_eq!(late["edges"][0]["from"], nodes[0].trace_id.to_string());
    }

    #[test]
    fn forks_are_two_edges_from_one_node_and_repeats_are_counted() {
        let graph = drawn(&[node(1, None, false), node(2, Some(1), false), node(3, Some(1), false)], 0);
        let from: Vec<&str> =
            graph["edges"].as_array().unwrap().iter().map(|edge| edge["from"].as_str().unwrap()).collect();
        assert_eq!(from[0], from[1]);
        assert_eq!(graph["nodes"][2]["count"], 3);
    }

    #[test]
    fn a_lone_orphan_has_no_edge_to_itself() {
        let graph = drawn(&[node(2, Some(9), true)], i64::MAX);
        assert_eq!(graph["edges"].as_array().unwrap().len(), 0);
    }
}
