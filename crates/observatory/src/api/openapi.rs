//! The API described for machines.

use loopbreaker_record::{Versions, json_schema, json_schema_of_all};
use serde_json::{Map, Value, json};

use super::query::Query;
use super::reply::{error, json_reply};
use super::{Answered, ENDPOINTS, PREFIX, Route, shapes};

/// The JSON Schema of every version that is accepted, or of the one that is asked for.
pub(crate) fn schema(query: &Query) -> Answered {
    let versions = Versions::builtin();
    let Some(major) = query.number("version")? else {
        return Ok(json_reply(200, &json_schema_of_all(versions)));
    };
    let Some(version) = versions.of(major) else {
        let message = format!("{} are accepted", versions.range());
        return Err(Box::new(error(404, "unsupported_version", &message)));
    };
    Ok(json_reply(200, &json_schema(version)))
}

/// `OpenAPI` 3.1, made from the list of endpoints.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let path = paths.entry(format!("{PREFIX}{}", endpoint.path)).or_insert_with(|| json!({}));
        let mut parameters: Vec<Value> = Vec::new();
        if endpoint.path.contains("{id}") {
            parameters.push(parameter("id", "path", true));
        }
        if endpoint.route == Route::Events {
            parameters.push(parameter("Last-Event-ID", "header", false));
        }
        parameters.extend(queries(endpoint.route).iter().map(|name| parameter(name, "query", false)));
        let mut operation = json!({
            "summary": endpoint.does,
            "operationId": format!("{}{}", endpoint.method.to_lowercase(), endpoint.path.replace(['/', '{', '}', '-', '.'], "_")),
            "parameters": parameters,
            "responses": {
                "200": { "description": "Done" },
                "default": {
                    "description": "It was not done",
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
                },
            },
        });
        if let Some(shape) = shapes::of(endpoint.route) {
            let schema = json!({ "$ref": format!("#/components/schemas/{shape}") });
            operation["responses"]["200"]["content"] = json!({ "application/json": { "schema": schema } });
        }
        if endpoint.route == Route::Ingest {
            operation["responses"]["201"] = operation["responses"]["200"].clone();
            operation["responses"]["201"]["description"] = "One log that is new: it is kept".into();
        }
        if ["POST", "PUT"].contains(&endpoint.method) {
            operation["requestBody"] = body(endpoint.route);
        }
        path[endpoint.method.to_lowercase()] = operation;
    }
    // References inside of the schema have to start from where it stands now.
    let log = json_schema_of_all(Versions::builtin()).to_string();
    let log: Value =
        serde_json::from_str(&log.replace("\"#/$defs/", "\"#/components/schemas/DecisionLog/$defs/"))
            .unwrap_or(Value::Null);
    let violation = json!({
        "type": "object",
        "required": ["field", "message"],
        "properties": { "field": { "type": "string" }, "message": { "type": "string" } },
    });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Loopbreaker observatory", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": {
            "DecisionLog": log,
            "Error": {
                "type": "object",
                "required": ["error"],
                "properties": {
                    "error": { "type": "string" },
                    "message": { "type": "string" },
                    "violations": { "type": "array", "items": violation },
                },
            },
        } },
    });
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.extend(shapes::schemas());
    }
    document
}

fn parameter(name: &str, place: &str, required: bool) -> Value {
    json!({ "name": name, "in": place, "required": required, "schema": { "type": "string" } })
}

fn queries(route: Route) -> &'static [&'static str] {
    match route {
        Route::Sessions => &["state", "min_loop", "tenant", "cluster_id", "q", "sort", "cursor", "limit"],
        Route::Session | Route::Graph | Route::Findings | Route::Order => &["tenant"],
        Route::Steps => &["tenant", "at", "brief", "cursor", "limit"],
        Route::Search => &[
            "q", "tenant", "session_id", "agent", "tool", "status", "severity", "kind", "cluster_id", "from",
            "to", "cursor", "limit",
        ],
        Route::Export => &[
            "q", "tenant", "session_id", "agent", "tool", "status", "severity", "kind", "cluster_id", "from",
            "to",
        ],
        Route::Cost => &["by", "bucket", "tenant", "cluster_id", "agent", "tool", "model", "from", "to"],
        Route::Overview => &["since", "tenant"],
        Route::DropSearch => &["name"],
        Route::Topology => &["tenant", "cluster_id"],
        Route::Violations => &["tenant", "cursor", "limit"],
        Route::Audit => &["order", "cursor", "limit"],
        Route::Events => &["topics"],
        Route::Schema => &["version"],
        _ => &[],
    }
}

fn body(route: Route) -> Value {
    let log = json!({ "$ref": "#/components/schemas/DecisionLog" });
    if route == Route::Ingest {
        let schema = json!({ "anyOf": [log, { "type": "array", "items": log }] });
        return json!({
            "required": true,
            "content": { "application/json": { "schema": schema }, "application/x-ndjson": { "schema": log } },
        });
    }
    let fields: &[&str] = match route {
        Route::Order => &["reason", "message", "trace_id", "content", "tool_input"],
        Route::GuardCheck => &["session_id", "tool", "args", "scope"],
        Route::GuardOutcome => &["session_id", "tool", "args", "result", "status"],
        Route::GuardReset => &["session_id", "scope"],
        Route::PutDetectors => &["sentinel", "entropy", "redundancy", "semantic"],
        Route::TryPolicy => &["policy", "last"],
        Route::PutPolicy => &["spec"],
        Route::PutSwitch => &["tenant", "scope_key", "scope_value", "route", "reason", "expires_at"],
        _ => &["name", "query"],
    };
    let properties: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
    json!({ "content": { "application/json": { "schema": { "type": "object", "properties": properties } } } })
}
