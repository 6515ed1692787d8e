//! What can be looked at.

use loopbreaker_observatory::Topic;
use serde_json::{Value, json};

use crate::server::{Server, exchange, in_session, log};

#[test]
fn sessions_are_listed_page_by_page() {
    let server = Server::start();
    for number in 0..7 {
        server.pass(1_000);
        server.accept(&in_session(number, &format!("run-{number}")));
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, page) = server.get(&format!("/sessions?limit=3&cursor={cursor}"));
        seen.extend(page["sessions"].as_array().unwrap().iter().map(|session| session["session_id"].clone()));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen, ["run-6", "run-5", "run-4", "run-3", "run-2", "run-1", "run-0"]);
    assert_eq!(server.get("/sessions?q=RUN-3").1["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/sessions?cursor=x").0, 400);
    assert_eq!(server.get("/sessions?state=happy").0, 400);
}

#[test]
fn steps_can_be_played_back_and_looked_at_as_of_any_of_them() {
    let server = Server::start();
    for number in 0..5 {
        let mut log = in_session(number, "run");
        log["state_delta"] = json!({
            "added_to_memory": [format!("fact {number}")], "tokens_consumed": 10,
            "cumulative_session_cost": f64::from(number),
        });
        server.accept(&log);
    }
    let (_, first) = server.get("/sessions/run/steps?limit=3");
    assert_eq!(first["steps"].as_array().unwrap().len(), 3);
    let (_, rest) =
        server.get(&format!("/sessions/run/steps?limit=3&cursor={}", first["next"].as_str().unwrap()));
    assert_eq!(rest["steps"][1]["log"]["cognition"]["intent"], "intent 4");
    assert_eq!(rest["next"], Value::Null);
    let (_, at) = server.get("/sessions/run/steps?at=3");
    assert_eq!(at["memory"], json!(["fact 0", "fact 1", "fact 2"]));
    assert_eq!((&at["step"], &at["tokens"], &at["cost_usd"]), (&json!(3), &json!(30), &json!(2.0)));
    assert_eq!(at["intent"], "intent 2");
    assert_eq!(server.get("/sessions/run/steps?at=99").1["step"], 5);
}

#[test]
fn search_finds_words_of_every_field_and_filters() {
    let server = Server::start();
    let mut log = in_session(1, "run");
    log["cognition"]["intent"] = "repair the parser".into();
    log["cognition"]["reasoning_chain"] = json!(["tokens are\nmissing", "so look"]);
    log["action"] = json!({
        "tool_call": "grep", "tool_input": { "pattern": "lexer" }, "tool_output_summary": "nothing found",
        "status": "failure",
    });
    server.accept(&log);
    server.accept(&in_session(2, "run"));
    let hits = |query: &str| server.get(&format!("/search?{query}")).1["results"].as_array().unwrap().len();
    for word in
        ["parser", "missing", "grep", "lexer", "nothing", "PARSER", "pars*", "%22repair+the%22", "the+parser"]
    {
        assert_eq!(hits(&format!("q={word}")), 1, "{word}");
    }
    assert_eq!(hits("q=%22the+repair%22"), 0);
    assert_eq!(hits("q=intent&status=failure"), 0);
    assert_eq!(hits("tool=grep"), 1);
    assert_eq!(hits("agent=a"), 2);
    assert_eq!(hits("from=2026-02-22T00:00:00Z"), 0);
    for odd in ["q=%22", "q=*", "q=AND", "q=a%22b", "q=NEAR(", "q=-x", "q=col:x", "q=%00"] {
        assert_eq!(server.get(&format!("/search?{odd}")).0, 200, "{odd}");
    }
    let (_, found) = server.get("/search?q=parser");
    let hit = json!({ "text": "parser", "hit": true });
    assert!(found["results"][0]["matches"].as_array().unwrap().contains(&hit), "{found}");
}

#[test]
fn everything_can_be_exported_line_by_line() {
    let server = Server::start();
    let logs: Vec<Value> = (0..450).map(log).collect();
    assert_eq!(server.post("/decision-logs", &Value::from(logs)).1["accepted"], 450);
    let (status, head, body) = exchange(server.address, "GET", "/export", &[], "").unwrap();
    assert_eq!(status, 200);
    assert!(head.contains("application/x-ndjson"));
    let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 450);
    assert_eq!(lines[449]["log"]["cognition"]["intent"], "intent 449");
}

#[test]
fn the_schema_and_the_api_describe_themselves() {
    let server = Server::start();
    assert_eq!(server.get("/schema/decision-log").1["title"], "DecisionLog");
    assert_eq!(server.get("/schema/decision-log?version=2").1["title"], "DecisionLog, version 2");
    assert_eq!(server.get("/schema/decision-log?version=1").1["additionalProperties"], false);
    assert_eq!(server.get("/schema/decision-log?version=9").0, 404);
    let (_, document) = server.get("/openapi.json");
    for path in document["paths"].as_object().unwrap().keys() {
        let path = path.trim_start_matches("/api/v1").replace("{id}", "none");
        let (status, answer) = server.call("PATCH", &path, &[], "");
        assert_eq!((status, &answer["error"]), (405, &json!("method_not_allowed")), "{path}");
    }
}

#[test]
fn a_search_is_saved_under_its_name() {
    let server = Server::start();
    for query in ["first", "second"] {
        let (status, _) = server.post("/searches", &json!({ "name": "mine", "query": query }));
        assert_eq!(status, 201);
    }
    assert_eq!(server.get("/searches").1["searches"], json!([{ "name": "mine", "query": "second" }]));
    assert_eq!(server.post("/searches", &json!({ "name": "" })).1["violations"].as_array().unwrap().len(), 2);
}

#[test]
fn a_saved_search_holds_no_credential() {
    let server = Server::start();
    let (key, masked) = ("sk-abcdef0123456789abcdef", "sk-***");
    let (status, _) = server.post("/searches", &json!({ "name": key, "query": format!("q={key}") }));
    assert_eq!(status, 201);
    let kept = json!([{ "name": masked, "query": format!("q={masked}") }]);
    assert_eq!(server.get("/searches").1["searches"], kept);
    server.call("DELETE", &format!("/searches?name={key}"), &[], "");
    assert_eq!(server.get("/searches").1["searches"], json!([]));
}

#[test]
fn no_credential_in_the_name_of_a_field_is_told_or_kept() {
    let server = Server::start();
    let mut listener = server.observatory.subscribe(vec![Topic::Violations], None, None);
    let key = "sk-abcdef0123456789abcdef";
    let mut log = in_session(1, "run");
    log[key] = 1.into();
    log["action"][key] = 1.into();
    let (status, answer) = server.post("/decision-logs", &log);
    assert_eq!(status, 422);
    let line = format!("{log}\n{log}");
    let (_, lines) =
        server.call("POST", "/decision-logs", &[("content-type", "application/x-ndjson")], &line);
    server.observatory.flush();
    let kept = server.get("/violations").1;
    let told: Vec<Value> = std::iter::from_fn(|| listener.poll()).map(|event| event.body()).collect();
    for told in [answer, lines, kept, Value::from(told)] {
        let told = told.to_string();
        assert!(told.contains("action.sk-***") && !told.contains("abcdef0123"), "{told}");
    }
}

#[test]
fn what_is_too_old_or_too_much_is_forgotten_and_the_audit_stays() {
    let server = Server::start_with(|options| options.max_age = std::time::Duration::from_secs(3_600));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    server.accept(&in_session(1, "old"));
    server.post("/sessions/old/pause", &json!({}));
    server.pass(3_600_001);
    server.accept(&in_session(2, "new"));
    runtime.block_on(server.observatory.enforce_retention()).unwrap();
    assert_eq!(server.get("/sessions/old").0, 404);
    assert_eq!(server.get("/search?q=intent").1["results"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/audit").1["entries"].as_array().unwrap().len(), 1);
    server.accept(&in_session(3, "new"));
}

#[test]
fn a_store_that_is_over_its_size_forgets_the_oldest() {
    let server = Server::start_with(|options| options.max_bytes = 2 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let text = "word ".repeat(400);
    for batch in 0..5 {
        let logs: Vec<Value> = (0..400)
            .map(|number| {
                let mut log = in_session(batch * 400 + number, "run");
                log["action"]["tool_output_summary"] = text.as_str().into();
                log
            })
            .collect();
        server.post("/decision-logs", &Value::from(logs));
    }
    assert!(runtime.block_on(server.observatory.enforce_retention()).unwrap() >= 100);
    let (_, found) = server.get("/search?limit=1");
    assert_eq!(found["results"][0]["log"]["cognition"]["intent"], "intent 1999", "the newest is there");
}

/// Where a value is not as its schema says, in words.
fn misfits(value: &Value, schema: &Value, document: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let known = name.strip_prefix('#').and_then(|path| document.pointer(path));
        return known.map_or_else(
            || vec![format!("{name} is not there")],
            |known| misfits(value, known, document, at),
        );
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let tried: Vec<_> = any.iter().map(|schema| misfits(value, schema, document, at)).collect();
        return if tried.iter().any(Vec::is_empty) { Vec::new() } else { tried.concat() };
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().flat_map(|schema| misfits(value, schema, document, at)).collect();
    }
    let fits = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    };
    if !fits {
        return vec![format!("{at} is {value}, not {}", schema["type"])];
    }
    let mut found = Vec::new();
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(misfits(item, &schema["items"], document, &format!("{at}[{index}]")));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        match value.get(name) {
            Some(field) => {
                found.extend(misfits(field, &schema["properties"][name], document, &format!("{at}.{name}")));
            }
            None => found.push(format!("{at}.{name} is missing")),
        }
    }
    found
}

#[test]
fn answers_are_as_the_document_of_the_api_says() {
    let server = Server::start();
    server.observatory.govern(crate::policies::Ladders::shared());
    for number in 0..6 {
        let mut log = in_session(number, "run");
        log["action"] = json!({ "tool_call": "make", "tool_output_summary": "1 error", "status": "failure" });
        log["cognition"]["intent"] = "build".into();
        server.accept(&log);
    }
    let mut handed = crate::server::behind(7, 5);
    handed["identity"]["agent_id"] = "b".into();
    server.accept(&handed);
    server.post("/decision-logs", &json!({}));
    server.post("/searches", &json!({ "name": "n", "query": "q" }));
    server.post("/sessions/run/pause", &json!({}));
    let (_, document) = server.get("/openapi.json");
    let mut looked_at = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let schema = &operations["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let path = path.trim_start_matches("/api/v1").replace("{id}", "run");
        let (status, answer) = server.get(&path);
        assert_eq!(status, 200, "{path}: {answer}");
        assert_eq!(misfits(&answer, schema, &document, &path), Vec::<String>::new());
        looked_at += 1;
    }
    assert_eq!(looked_at, 16);
    let named = |shape: &str| document["components"]["schemas"][shape]["properties"].clone();
    assert!(named("OrderGiven").get("note").is_some());
    for field in ["rewritten_args", "unchanged_since"] {
        assert!(named("GuardVerdict").get(field).is_some(), "{field}");
    }
    let (_, at) = server.get("/sessions/run/steps?at=2");
    let schema = json!({ "$ref": "#/components/schemas/StateAt" });
    assert_eq!(misfits(&at, &schema, &document, "at"), Vec::<String>::new());
}

#[test]
fn a_search_for_what_there_is_not_is_refused() {
    let server = Server::start();
    for query in ["status=odd", "kind=odd", "severity=odd"] {
        let (status, answer) = server.get(&format!("/search?{query}"));
        assert_eq!(status, 400, "{query}");
        assert!(answer["message"].as_str().unwrap().contains("must be one of"), "{answer}");
    }
    for query in ["status=pending", "kind=failing_repeat", "kind=entropy", "severity=loop"] {
        assert_eq!(server.get(&format!("/search?{query}")).0, 200, "{query}");
    }
}

#[test]
fn a_number_that_cannot_be_is_told_which_ones_can() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    let said = |path: &str| server.get(path).1["message"].clone();
    assert_eq!(said("/sessions?limit=-1"), "limit must be a whole number from 1 on");
    assert_eq!(said("/sessions/run/steps?at=-1"), "at must be a whole number from 0 on");
}

#[test]
fn a_search_that_cannot_be_saved_names_what_is_wrong_with_it() {
    let server = Server::start();
    let wrong = |search: Value| server.post("/searches", &search).1["violations"][0].clone();
    let long = "x".repeat(2_001);
    assert_eq!(wrong(json!({ "name": long, "query": "q" }))["field"], "name");
    assert_eq!(wrong(json!({ "name": "n", "query": long }))["field"], "query");
    assert_eq!(
        wrong(json!({ "name": 5, "query": "q" })),
        json!({ "field": "name", "message": "must be a string" })
    );
}

#[test]
fn another_method_is_answered_with_those_that_there_are() {
    let server = Server::start();
    let (status, head, _) = exchange(server.address, "PATCH", "/searches", &[], "").unwrap();
    assert_eq!(status, 405);
    assert!(head.to_ascii_lowercase().contains("allow: get, post, delete, head"), "{head}");
}

#[test]
fn the_head_of_an_answer_can_be_asked_for() {
    let server = Server::start();
    let (status, head, body) = exchange(server.address, "HEAD", "/sessions", &[], "").unwrap();
    let (_, whole, said) = exchange(server.address, "GET", "/sessions", &[], "").unwrap();
    assert_eq!((status, body.as_str()), (200, ""));
    let length = |head: &str| head.lines().find(|line| line.starts_with("content-length")).map(str::to_owned);
    assert_eq!(length(&head), length(&whole));
    assert!(!said.is_empty());
    assert_eq!(exchange(server.address, "HEAD", "/guard/check", &[], "").unwrap().0, 405);
}
