//! What answers look like, as a table that the `OpenAPI` document is made from; tests hold real answers against it.

use serde_json::{Map, Value, json};

use super::Route;

/// Shapes by name: fields with their kinds.
///
/// A kind is `text`, `number`, `count` (whole), `flag`, `any`, or the name of a shape; `?` behind it says that it may
/// be null, `[]` that it is a list. `?` behind a field's name says that it may be absent.
const SHAPES: &[(&str, &[(&str, &str)])] = &[
    ("Wasted", &[("steps", "count"), ("tokens", "count"), ("cost_usd", "number")]),
    (
        "Alert",
        &[
            ("agent_id", "text"),
            ("entropy_score", "number"),
            ("window_size", "count"),
            ("repeated_pattern", "Pattern"),
            ("occurrence_count", "count"),
            ("since", "text"),
        ],
    ),
    ("Pattern", &[("intent", "text"), ("tool_call", "text"), ("action_status", "text")]),
    (
        "Verdict",
        &[("action", "text"), ("enforced", "flag"), ("policy", "text"), ("kind", "text"), ("at", "text")],
    ),
    (
        "SessionSummary",
        &[
            ("session_id", "text"),
            ("tenant", "text"),
            ("agents", "text[]"),
            ("state", "text"),
            ("entropy_score", "number"),
            ("entropy_history", "number[]"),
            ("loop_score", "number"),
            ("steps", "count"),
            ("tokens", "count"),
            ("cost_usd", "number"),
            ("wasted", "Wasted"),
            ("alert", "Alert?"),
            ("last_verdict", "text?"),
            ("verdict", "Verdict?"),
            ("cluster_id", "text"),
            ("started_at", "text"),
            ("last_at", "text"),
        ],
    ),
    ("Sessions", &[("sessions", "SessionSummary[]"), ("next", "text?"), ("total", "count")]),
    ("Session", &[("*", "SessionSummary"), ("findings", "Finding[]"), ("verdicts", "Verdict[]")]),
    (
        "Finding",
        &[
            ("at", "text"),
            ("detector", "text"),
            ("kind", "text"),
            ("severity", "text"),
            ("count", "count"),
            ("score?", "number"),
            ("period?", "count"),
            ("onset?", "count?"),
            ("step?", "count?"),
            ("identity?", "text"),
            ("trace_id?", "text?"),
            ("evidence?", "any[]"),
            ("message?", "text"),
            ("prevented_by?", "text"),
        ],
    ),
    ("Findings", &[("findings", "Finding[]"), ("verdicts", "Verdict[]")]),
    (
        "Step",
        &[
            ("step", "count"),
            ("severity", "text"),
            ("cost_usd", "number"),
            ("tokens", "count"),
            ("redundant", "flag"),
            ("open", "flag"),
            ("log", "DecisionLog"),
        ],
    ),
    ("Steps", &[("steps", "Step[]"), ("next", "text?")]),
    (
        "StateAt",
        &[
            ("step", "count"),
            ("memory", "text[]"),
            ("memory_added", "text[]"),
            ("tokens", "count"),
            ("cost_usd", "number"),
            ("intent", "text"),
            ("entropy_score", "number?"),
            ("wasted", "Wasted"),
            ("row", "Step?"),
        ],
    ),
    (
        "Node",
        &[
            ("trace_id", "text"),
            ("parent_step_id", "text?"),
            ("agent_id", "text"),
            ("intent", "text"),
            ("tool_call", "text"),
            ("status", "text"),
            ("step", "count"),
            ("severity", "text"),
            ("cost_usd", "number"),
            ("redundant", "flag"),
            ("orphan", "flag"),
            ("count", "count"),
        ],
    ),
    ("Edge", &[("from", "text"), ("to", "text"), ("count", "count")]),
    ("Graph", &[("nodes", "Node[]"), ("edges", "Edge[]"), ("truncated", "flag")]),
    ("Match", &[("text", "text"), ("hit", "flag")]),
    (
        "SearchResult",
        &[
            ("session_id", "text"),
            ("tenant", "text"),
            ("severity", "text"),
            ("step", "count"),
            ("cost_usd", "number"),
            ("log", "DecisionLog"),
        ],
    ),
    ("SearchResults", &[("results", "SearchResult[]"), ("next", "text?"), ("took_ms", "count")]),
    (
        "Costs",
        &[
            ("cost_usd", "number"),
            ("loop_cost_usd", "number"),
            ("wasted_cost_usd", "number"),
            ("tokens", "count"),
            ("steps", "count"),
        ],
    ),
    ("CostCell", &[("*", "Costs"), ("key", "text"), ("tenant", "text"), ("at", "text")]),
    (
        "Cost",
        &[
            ("cells", "CostCell[]"),
            ("total", "Costs"),
            ("truncated", "flag"),
            ("from", "text"),
            ("to", "text"),
            ("bucket_ms", "count"),
        ],
    ),
    (
        "Agent",
        &[
            ("agent_id", "text"),
            ("tenant", "text"),
            ("cluster_id", "text"),
            ("state", "text"),
            ("steps", "count"),
            ("session_id", "text?"),
            ("tokens", "count"),
            ("cost_usd", "number"),
            ("loop_score", "number"),
            ("violations", "count"),
            ("last_at", "text"),
        ],
    ),
    (
        "HandOff",
        &[
            ("from", "text"),
            ("to", "text"),
            ("tenant", "text"),
            ("cluster_id", "text"),
            ("count", "count"),
            ("latency_ms", "count"),
            ("session_id", "text?"),
            ("loop", "flag"),
            ("last_at", "text"),
        ],
    ),
    ("Topology", &[("nodes", "Agent[]"), ("edges", "HandOff[]")]),
    (
        "Refused",
        &[
            ("at", "text"),
            ("tenant", "text"),
            ("agent_id", "text?"),
            ("payload_sha256", "text"),
            ("error", "text"),
            ("violations", "any"),
        ],
    ),
    ("Violations", &[("violations", "Refused[]"), ("next", "text?")]),
    (
        "AuditEntry",
        &[
            ("seq", "count"),
            ("at", "text"),
            ("operator", "text"),
            ("action", "text"),
            ("session_id", "text?"),
            ("reason", "text?"),
            ("before", "text?"),
            ("after", "text?"),
            ("prev_hash", "text"),
            ("hash", "text"),
        ],
    ),
    ("Audit", &[("entries", "AuditEntry[]"), ("next", "text?")]),
    ("Search", &[("name", "text"), ("query", "text")]),
    ("Searches", &[("searches", "Search[]")]),
    (
        "SessionCounts",
        &[
            ("active", "count"),
            ("warning", "count"),
            ("loop", "count"),
            ("paused", "count"),
            ("ended", "count"),
        ],
    ),
    ("Saved", &[("cost_usd", "number"), ("rounds", "number"), ("loops", "count"), ("estimated", "flag")]),
    ("Degraded", &[("part", "text"), ("reason", "text")]),
    (
        "Overview",
        &[
            ("sessions", "SessionCounts"),
            ("calls_per_second", "number"),
            ("cost_per_minute_usd", "number"),
            ("loops_open", "count"),
            ("wasted_today", "Wasted"),
            ("saved_today", "Saved?"),
            ("degraded", "Degraded[]"),
            ("unwritten", "count"),
            ("dropped", "count"),
        ],
    ),
    ("KindCounts", &[("kind", "text"), ("enforced", "count"), ("shadow", "count")]),
    ("PolicyCounts", &[("enforced", "count"), ("shadow", "count"), ("by_kind", "KindCounts[]")]),
    (
        "Policy",
        &[
            ("id", "text"),
            ("mode", "text"),
            ("source", "text"),
            ("overridden", "flag"),
            ("spec", "any"),
            ("findings", "PolicyCounts"),
        ],
    ),
    ("Policies", &[("policies", "Policy[]")]),
    (
        "KillSwitch",
        &[
            ("id", "text?"),
            ("key", "text"),
            ("value", "text"),
            ("path", "text?"),
            ("reason", "text?"),
            ("expires_at", "text?"),
            ("on", "flag"),
            ("source", "text"),
        ],
    ),
    ("KillSwitches", &[("kill_switches", "KillSwitch[]")]),
    (
        "Fired",
        &[
            ("session_id", "text"),
            ("tenant", "text"),
            ("step", "count"),
            ("trace_id", "text?"),
            ("agent_id", "text?"),
            ("kind", "text"),
            ("count", "count"),
            ("period", "count"),
            ("message", "text"),
            ("action", "text"),
        ],
    ),
    (
        "TriedSession",
        &[
            ("session_id", "text"),
            ("tenant", "text"),
            ("steps", "count"),
            ("would", "text?"),
            ("did", "text?"),
        ],
    ),
    (
        "Tried",
        &[
            ("sessions", "count"),
            ("steps", "count"),
            ("took_ms", "count"),
            ("truncated", "flag"),
            ("fired", "Fired[]"),
            ("by_session", "TriedSession[]"),
            ("summary", "any"),
        ],
    ),
    (
        "Budget",
        &[("policy", "text"), ("rule", "text"), ("key", "text"), ("value", "text"), ("state", "text")],
    ),
    ("Budgets", &[("budgets", "Budget[]")]),
    ("StoreState", &[("state", "text"), ("reason", "text?"), ("unwritten", "count"), ("dropped", "count")]),
    ("Config", &[("detectors", "any"), ("store", "StoreState"), ("degraded", "Degraded[]")]),
    ("OrderGiven", &[("session_id", "text"), ("state", "text"), ("note?", "text")]),
    (
        "GuardVerdict",
        &[
            ("allowed", "flag"),
            ("detector", "text?"),
            ("kind", "text?"),
            ("count", "count"),
            ("threshold", "count"),
            ("strikes", "count"),
            ("feedback", "text?"),
            ("paused", "flag"),
            ("rewritten_args?", "text"),
            ("unchanged_since?", "count"),
        ],
    ),
];

/// The shape of the answer of a call, where it is always the same.
pub(crate) fn of(route: Route) -> Option<&'static str> {
    Some(match route {
        Route::Sessions => "Sessions",
        Route::Session => "Session",
        Route::Steps => "Steps",
        Route::Graph => "Graph",
        Route::Findings => "Findings",
        Route::Order => "OrderGiven",
        Route::Search => "SearchResults",
        Route::Cost => "Cost",
        Route::Topology => "Topology",
        Route::Violations => "Violations",
        Route::Searches | Route::DropSearch => "Searches",
        Route::Overview => "Overview",
        Route::Policies => "Policies",
        Route::PutPolicy => "Policy",
        Route::Switches => "KillSwitches",
        Route::PutSwitch => "KillSwitch",
        Route::TryPolicy => "Tried",
        Route::Budgets => "Budgets",
        Route::Audit => "Audit",
        Route::GuardCheck => "GuardVerdict",
        Route::Config => "Config",
        _ => return None,
    })
}

/// Every shape as JSON Schema.
pub(crate) fn schemas() -> Map<String, Value> {
    SHAPES.iter().map(|(name, fields)| ((*name).to_owned(), schema(fields))).collect()
}

fn schema(fields: &[(&str, &str)]) -> Value {
    let own = fields.iter().filter(|(name, _)| *name != "*");
    let required: Vec<&str> =
        own.clone().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect();
    let properties: Map<String, Value> =
        own.map(|(name, kind)| (name.trim_end_matches('?').to_owned(), kind_of(kind))).collect();
    let object = json!({ "type": "object", "required": required, "properties": properties });
    match fields.iter().find(|(name, _)| *name == "*") {
        Some((_, other)) => json!({ "allOf": [kind_of(other), object] }),
        None => object,
    }
}

fn kind_of(kind: &str) -> Value {
    if let Some(kind) = kind.strip_suffix("[]") {
        return json!({ "type": "array", "items": kind_of(kind) });
    }
    if let Some(kind) = kind.strip_suffix('?') {
        return json!({ "anyOf": [kind_of(kind), { "type": "null" }] });
    }
    match kind {
        "text" => json!({ "type": "string" }),
        "number" => json!({ "type": "number" }),
        "count" => json!({ "type": "integer" }),
        "flag" => json!({ "type": "boolean" }),
        "any" => json!({}),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}
