//! Recorded logs: what is accepted, what is refused and with which answer, and that the JSON Schema says the same.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read ends its test")]
#![expect(clippy::disallowed_methods, reason = "the cases are files; the crate itself reads none")]
#![expect(clippy::panic, reason = "a keyword that the checker does not know must not pass in silence")]

use std::path::Path;

use loopbreaker_record::{DecisionLog, Versions, json_schema, json_schema_of_all};
use regex_automata::meta::Regex;
use serde_json::Value;

/// Every case of a folder: its name, its log, and its expected answer.
fn cases(folder: &str) -> Vec<(String, Value, Option<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let read = |path: &Path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".answer.json") {
            let answer = path.with_extension("answer.json");
            found.push((name, read(&path), answer.exists().then(|| read(&answer))));
        }
    }
    assert!(found.len() > 5, "the cases were not found");
    found
}

/// The schema of the version that a log names; that of version 1 where it names none.
fn schema_for(log: &Value) -> Value {
    let version = log["identity"]["capability_version"].as_str().unwrap_or("1");
    let major = version.trim_start_matches('v').split('.').next().unwrap().parse().unwrap_or(1);
    json_schema(Versions::builtin().of(major).or(Versions::builtin().newest()).unwrap())
}

#[test]
fn accepted_logs_pass_both_validation_and_schema() {
    for (name, log, _) in cases("accepted") {
        let read = DecisionLog::from_value(log.clone());
        assert!(read.is_ok(), "{name}: {read:?}");
        let schema = schema_for(&log);
        assert!(fits(&log, &schema, &schema), "{name} against the schema");
        let written = serde_json::to_value(read.unwrap()).unwrap();
        assert!(fits(&written, &schema, &schema), "{name} as it is written again");
    }
}

#[test]
fn refused_logs_get_their_answer_and_do_not_fit_the_schema() {
    for (name, log, answer) in cases("rejected") {
        let rejection = DecisionLog::from_value(log.clone()).unwrap_err();
        assert_eq!(Some(rejection.answer()), answer, "{name}");
        let schema = schema_for(&log);
        assert!(!fits(&log, &schema, &schema), "{name} against the schema");
    }
}

#[test]
fn the_schema_of_all_versions_accepts_and_refuses_what_the_observatory_does() {
    let schema = json_schema_of_all(Versions::builtin());
    for (name, log, _) in cases("accepted") {
        assert!(fits(&log, &schema, &schema), "{name}");
    }
    for (name, log, _) in cases("rejected") {
        assert!(!fits(&log, &schema, &schema), "{name}");
    }
}

#[test]
fn a_strict_version_is_strict_in_the_schema_of_all_versions() {
    let schema = json_schema_of_all(Versions::builtin());
    let mut log = schema["examples"][0].clone();
    for (version, is_strict) in [("1.0.0", true), ("v1.2.3-rc.1", true), ("2.0.0", false), ("3.0.0", true)] {
        log["identity"]["capability_version"] = version.into();
        log["meta"]["mood"] = "good".into();
        assert_eq!(fits(&log, &schema, &schema), !is_strict, "{version}");
        assert_eq!(DecisionLog::from_value(log.clone()).is_err(), is_strict, "{version}");
    }
}

#[test]
fn the_example_of_a_schema_is_a_log_that_fits_it() {
    let versions = Versions::builtin();
    let each = versions.iter().map(json_schema);
    for schema in each.chain([json_schema_of_all(versions)]) {
        let example = &schema["examples"][0];
        assert!(fits(example, &schema, &schema), "{example}");
        assert!(DecisionLog::from_value(example.clone()).is_ok(), "{example}");
        assert!(!schema["description"].as_str().unwrap().contains("```"), "it is no place for Rust");
    }
}

/// Whether a value fits a schema, by the keywords that ours uses.
fn fits(value: &Value, schema: &Value, root: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return schema.as_bool().unwrap() };
    keywords.iter().all(|(keyword, says)| match keyword.as_str() {
        "$ref" => fits(value, root.pointer(says.as_str().unwrap().trim_start_matches('#')).unwrap(), root),
        "type" => match says {
            Value::Array(names) => names.iter().any(|name| is_of_type(value, name)),
            name => is_of_type(value, name),
        },
        "anyOf" | "oneOf" => says.as_array().unwrap().iter().any(|option| fits(value, option, root)),
        "enum" => says.as_array().unwrap().contains(value),
        "const" => says == value,
        "required" => value.as_object().is_none_or(|fields| {
            says.as_array().unwrap().iter().all(|name| fields.contains_key(name.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|fields| {
            fields.iter().all(|(name, value)| says.get(name).is_none_or(|schema| fits(value, schema, root)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|fields| {
            fields.keys().all(|name| schema["properties"].get(name).is_some() || says != &Value::Bool(false))
        }),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(item, says, root))),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= says.as_u64().unwrap()),
        "minLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 >= says.as_u64().unwrap())
        }
        "maxLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 <= says.as_u64().unwrap())
        }
        "minimum" => value.as_f64().is_none_or(|number| number >= says.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= says.as_f64().unwrap()),
        "pattern" => {
            value.as_str().is_none_or(|text| Regex::new(says.as_str().unwrap()).unwrap().is_match(text))
        }
        "if" => {
            let then = if fits(value, says, root) { "then" } else { "else" };
            schema.get(then).is_none_or(|schema| fits(value, schema, root))
        }
        "propertyNames" => value
            .as_object()
            .is_none_or(|fields| fields.keys().all(|name| fits(&Value::from(name.as_str()), says, root))),
        // Two of them are looked at with `if`.
        "then" | "else" | "$schema" | "$defs" | "examples" | "title" | "description" | "format"
        | "default" | "contentMediaType" => true,
        unknown => panic!("the schema uses {unknown}, which this test does not check"),
    })
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema names a type {other}"),
    }
}
