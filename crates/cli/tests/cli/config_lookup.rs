use crate::binary::{Desk, Outcome, repeats};

const STRICT: &str =
    "policies: [{ id: strict, spec: { tool_loops: { enabled: true, ladder: [reject] } } }]\n";

fn first_action(outcome: &Outcome) -> String {
    let run = outcome.lines().remove(0);
    format!("{} at {}", run["actions"][0]["action"].as_str().unwrap(), run["actions"][0]["step"])
}

#[test]
fn the_config_is_found_by_flag_then_variable_then_place() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4));
    let args = ["replay", "runs.jsonl", "--json"];
    assert_eq!(first_action(&desk.run(&args)), "hint at 2");

    desk.put("throttle.yaml", STRICT.replace("reject", "throttle"));
    desk.put("pause.yaml", STRICT.replace("reject", "pause"));
    desk.put("loopbreaker.yaml", STRICT);
    assert_eq!(first_action(&desk.run(&args)), "reject at 2");
    let by_variable = Outcome::of(desk.command(&args).env("LOOPBREAKER_CONFIG", "throttle.yaml"));
    assert_eq!(first_action(&by_variable), "throttle at 2");
    let by_flag = Outcome::of(
        desk.command(&args).args(["-c", "pause.yaml"]).env("LOOPBREAKER_CONFIG", "throttle.yaml"),
    );
    assert_eq!(first_action(&by_flag), "pause at 2");
    let empty_variable = Outcome::of(desk.command(&args).env("LOOPBREAKER_CONFIG", ""));
    assert_eq!(first_action(&empty_variable), "reject at 2");
}

#[test]
fn policies_that_do_not_look_at_tool_loops_do_nothing_about_them() {
    let desk = Desk::with("runs.jsonl", repeats("a", 8));
    desk.put("off.yaml", "policies: [{ id: p, spec: { chant: { enabled: true } } }]\n");
    let run = desk.run(&["replay", "runs.jsonl", "--json", "-c", "off.yaml"]).lines().remove(0);
    assert_eq!((run["verdict"].as_str(), run["actions"].as_array().map(Vec::len)), (Some("loop"), Some(0)));
}

#[test]
fn a_config_that_is_not_sound_stops_the_replay() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4));
    desk.put("bad.yaml", "sentinel:\n  default: { threshold: 0 }\n");
    let outcome = desk.run(&["replay", "runs.jsonl", "-c", "bad.yaml"]);
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
    assert!(outcome.stderr.contains("bad.yaml:2:25"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: `loopbreaker check -c bad.yaml`"), "{}", outcome.stderr);
}

#[test]
fn a_config_that_is_missing_is_an_error_where_it_was_asked_for() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4));
    for args in [&["replay", "runs.jsonl", "-c", "missing.yaml"][..], &["check", "-c", "missing.yaml"]] {
        let outcome = desk.run(args);
        assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
        assert!(outcome.stderr.contains("missing.yaml") && outcome.stderr.contains("\nhint: "));
    }
}
