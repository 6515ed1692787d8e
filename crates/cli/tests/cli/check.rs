use serde_json::json;

use crate::binary::{Desk, Outcome};
use crate::golden;

const BAD: &str = "\
semantic:
  threshold: 2
sentinel:
  default: { threshold: 0 }
  bypass: poll
entropi: {}
";

#[test]
fn a_sound_config_is_explained() {
    let desk = Desk::with("loopbreaker.yaml", "sentinel: { default: { threshold: 1, window_size: 5 } }\n");
    let outcome = desk.run(&["check"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("check-good.txt", &outcome.stdout);
}

#[test]
fn a_bad_config_is_told_with_line_column_and_caret() {
    let outcome = Desk::with("bad.yaml", BAD).run(&["check", "-c", "bad.yaml"]);
    assert_eq!(outcome.code, 1);
    golden::check("check-bad.txt", &outcome.stdout);
    golden::check("check-bad-stderr.txt", &outcome.stderr);
}

#[test]
fn without_a_config_the_defaults_are_explained() {
    let outcome = Desk::new().run(&["check"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("check-defaults.txt", &outcome.stdout);
}

#[test]
fn policy_files_are_looked_for_beside_the_config_and_told_by_their_own_lines() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("conf")).unwrap();
    desk.put("conf/lb.yaml", "policy_files: [agents.json, missing.json]\n");
    desk.put("conf/agents.json", "{\n  \"id\": \"agents\",\n  \"spec\": { \"mode\": \"enforced\" }\n}\n");
    let outcome = desk.run(&["check", "-c", "conf/lb.yaml"]);
    assert_eq!(outcome.code, 1);
    golden::check("check-policy-files.txt", &outcome.stdout);

    let document = one(&desk.run(&["check", "-c", "conf/lb.yaml", "--json"]));
    let files: Vec<_> = document["problems"].as_array().unwrap().iter().map(|it| &it["file"]).collect();
    assert_eq!(files, [&json!(null), &json!("agents.json")]);
}

#[test]
fn a_certificate_that_nobody_could_listen_with_is_told_with_the_line_of_its_key() {
    let desk = Desk::new();
    let made = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (own, other) = (made(), made());
    desk.put("cert.pem", own.cert.pem());
    desk.put("key.pem", own.signing_key.serialize_pem());
    desk.put("other.pem", other.signing_key.serialize_pem());
    desk.put("words.pem", "no certificate\n");
    desk.put("torn.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    let check = |cert: &str, key: &str, more: &[&str]| {
        desk.put("loopbreaker.yaml", format!("tls:\n  cert: {cert}\n  key: {key}\n"));
        desk.run(&[&["check"], more].concat())
    };
    assert_eq!(check("cert.pem", "key.pem", &[]).code, 0);
    for (cert, key, place, says) in [
        ("gone.pem", "key.pem", "2:9: tls.cert: ", "No such file"),
        ("words.pem", "key.pem", "2:9: tls.cert: ", "there is no certificate in it"),
        ("key.pem", "key.pem", "2:9: tls.cert: ", "there is no certificate in it"),
        ("torn.pem", "key.pem", "2:9: tls.cert: ", "no PEM file"),
        ("cert.pem", "gone.pem", "3:8: tls.key: ", "No such file"),
        ("cert.pem", "words.pem", "3:8: tls.key: ", "there is no private key in it"),
        ("cert.pem", "other.pem", "3:8: tls.key: ", "it does not belong to the certificate cert.pem"),
    ] {
        let outcome = check(cert, key, &[]);
        assert_eq!(outcome.code, 1, "{cert}, {key}: {}", outcome.stdout);
        for expected in [&*format!("loopbreaker.yaml:{place}"), says, "hint:"] {
            assert!(outcome.stdout.contains(expected), "{cert}, {key}: {expected}: {}", outcome.stdout);
        }
        let document = one(&check(cert, key, &["--json"]));
        assert_eq!(
            (&document["ok"], &document["problems"][0]["line"]),
            (&json!(false), &json!(if place.starts_with('2') { 2 } else { 3 }))
        );
    }
}

#[test]
fn json_is_one_document_where_there_is_no_config_to_read() {
    let outcome = Desk::new().run(&["check", "-c", "missing.yaml", "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (1, ""));
    let document = one(&outcome);
    assert_eq!((&document["file"], &document["ok"]), (&json!("missing.yaml"), &json!(false)));
    assert!(document["problems"][0]["message"].as_str().unwrap().contains("could not be read"));
}

#[test]
fn json_is_one_document() {
    let outcome = Desk::with("bad.yaml", BAD).run(&["check", "-c", "bad.yaml", "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (1, ""));
    let document = one(&outcome);
    assert_eq!((&document["file"], &document["ok"]), (&json!("bad.yaml"), &json!(false)));
    let first = &document["problems"][0];
    assert_eq!(
        [&first["line"], &first["column"], &first["path"]],
        [&json!(2), &json!(14), &json!("semantic.threshold")]
    );
    assert!(first["message"].is_string() && first["hint"].is_string());
    assert_eq!((&document["notices"], &document["explain"]), (&json!([]), &json!([])));

    let sound = one(&Desk::new().run(&["check", "--json"]));
    assert_eq!((&sound["file"], &sound["ok"], &sound["problems"]), (&json!(null), &json!(true), &json!([])));
    assert!(sound["explain"].as_array().unwrap().len() > 3);
}

#[test]
fn a_dash_reads_stdin() {
    let outcome = Desk::new().run_with_stdin(&["check", "-c", "-"], BAD.as_bytes());
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("<stdin>:2:14: "), "{}", outcome.stdout);
}

#[test]
fn what_is_no_text_is_told() {
    let outcome = Desk::with("bad.yaml", b"a: 1\nb: \xff\n").run(&["check", "-c", "bad.yaml"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("bad.yaml:2: this is not UTF-8"), "{}", outcome.stderr);
}

fn one(outcome: &Outcome) -> serde_json::Value {
    let mut lines = outcome.lines();
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}
