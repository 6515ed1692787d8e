//! What `replay` prints or writes has no credential in it, wherever in a recorded run one stood.

use serde_json::json;

use crate::binary::Desk;

const KEY: &str = "sk-ABCDEFGHIJKLMNOPQRSTUVWX1234567890abcd";

/// What no output may contain.
const SECRETS: &[&str] =
    &["ABCDEFGHIJKL", "eyJsecretbearer", "1234567890abcdefghij", "MIIEsecretpem", "IOSFODNN7EXAMPLE"];

fn desk() -> Desk {
    let called = json!({
        "tool": format!("curl-{KEY}"),
        "args": { "header": "Authorization: Bearer eyJsecretbearer.tok.en", "key": KEY },
        "result": "ghp_1234567890abcdefghijABCDEFGHIJ123456 \
            -----BEGIN RSA PRIVATE KEY-----\nMIIEsecretpem\n-----END RSA PRIVATE KEY-----",
    });
    let said = json!({ "thought": "I use AKIAIOSFODNN7EXAMPLE" });
    let run = json!({ "id": format!("run {KEY}"), "steps": [called, called, called, called, said] });
    // A line that cannot be read is told with words of that line.
    let broken = json!({ "id": "b", "steps": KEY });
    Desk::with("runs.jsonl", format!("{run}\n{broken}\n"))
}

fn assert_masked(what: &str, text: &str) {
    assert!(!text.is_empty(), "{what} is empty");
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {what}: {text}");
    }
}

#[test]
fn the_table_and_its_explanation_show_no_credential() {
    for more in [&[][..], &["--explain"], &["-v", "--explain"]] {
        let outcome = desk().run(&[&["replay", "runs.jsonl"], more].concat());
        assert_masked("the table", &outcome.stdout);
        assert_masked("what was said", &outcome.stderr);
        assert!(outcome.stdout.contains("run sk-***"), "{}", outcome.stdout);
    }
}

#[test]
fn json_shows_no_credential() {
    let outcome = desk().run(&["replay", "runs.jsonl", "--json", "--explain"]);
    assert_masked("the lines", &outcome.stdout);
    assert_eq!(outcome.lines()[0]["id"], "run sk-***");
}

#[test]
fn the_page_shows_no_credential() {
    let desk = desk();
    desk.run(&["replay", "runs.jsonl", "--html", "page.html"]);
    let page = desk.read("page.html");
    assert_masked("the page", &page);
    assert!(page.contains("Authorization: Bearer ***") && page.contains("AKIA***"), "{page}");
}
