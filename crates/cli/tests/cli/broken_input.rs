use std::fs::{self, File};
use std::io::{BufWriter, Write as _};

use crate::binary::{Desk, Outcome, repeats};
use crate::golden;

#[test]
fn a_broken_line_is_told_with_its_number_and_the_others_are_read() {
    let desk =
        Desk::with("runs.jsonl", repeats("a", 1) + "{\"id\":\"b\",\"steps\":[{]}\n" + &repeats("c", 1));
    let outcome = desk.run(&["replay", "runs.jsonl", "--json"]);
    assert_eq!((outcome.code, ids(&outcome)), (1, vec!["a".into(), "c".into()]));
    assert!(outcome.stderr.starts_with("runs.jsonl:2: "), "{}", outcome.stderr);
}

#[test]
fn of_many_broken_lines_twenty_are_shown() {
    let desk = Desk::with("runs.jsonl", repeats("a", 1) + &"{\"id\":1,\"steps\":7}\n".repeat(50));
    let outcome = desk.run(&["replay", "runs.jsonl"]);
    assert_eq!(outcome.code, 1);
    assert_eq!(outcome.stderr.matches("runs.jsonl:").count(), 20);
    assert!(outcome.stderr.contains("\n… and 30 more\n"), "{}", outcome.stderr);
}

#[test]
fn files_that_cannot_be_read_are_told_with_a_next_step() {
    let desk = Desk::with("empty.jsonl", "");
    fs::create_dir(desk.path("folder")).unwrap();
    desk.put("blank.jsonl", " \n\n");
    desk.put("packed.jsonl.gz", b"\x1f\x8b\x08\x00");
    desk.put("notes.txt", "nothing that an agent did\n");
    desk.put("good.jsonl", repeats("a", 1));
    let files = [
        "missing.jsonl", "folder", "empty.jsonl", "blank.jsonl", "packed.jsonl.gz", "notes.txt", "good.jsonl",
    ];
    let outcome = desk.run(&[&["replay", "--json"][..], &files].concat());
    assert_eq!((outcome.code, ids(&outcome)), (1, vec!["a".into()]));
    golden::check("unreadable.txt", &outcome.stderr);
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_told() {
    use std::os::unix::fs::PermissionsExt as _;

    let desk = Desk::with("secret.jsonl", repeats("a", 1));
    fs::set_permissions(desk.path("secret.jsonl"), fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything, and then there is nothing to see here.
    if File::open(desk.path("secret.jsonl")).is_err() {
        let outcome = desk.run(&["replay", "secret.jsonl"]);
        assert_eq!(outcome.code, 1);
        assert!(outcome.stderr.contains("may not be read"), "{}", outcome.stderr);
    }
}

#[test]
fn hostile_lines_are_told_and_never_crash() {
    let deep = format!("{{\"id\":\"deep\",\"steps\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_args = format!(
        "{{\"id\":\"deep-args\",\"steps\":[{{\"tool\":\"x\",\"args\":{}{}}}]}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let lines: Vec<Vec<u8>> = vec![
        repeats("first", 1).trim_end().into(),
        deep.into(),
        deep_args.into(),
        b"{\"id\":\"\xff\xfe\",\"steps\":[{\"tool\":\"\xc3\x28\"}]}".into(),
        b"{\"id\":\"nul\",\"steps\":[{\"tool\":\"a\0b\"}]}".into(),
        b"\0\0\0\0".into(),
        b"{\"id\":{},\"steps\":[{\"tool\":5,\"args\":true,\"tokens\":\"many\",\"time\":[]}]}".into(),
        b"{\"id\":\"types\",\"steps\":{\"tool\":1}}".into(),
        b"null".into(),
        b"[[[]]]".into(),
        b"\"text\"".into(),
        b"{\"id\":\"cost\",\"steps\":[{\"tool\":\"a\",\"cost_usd\":1e999}]}".into(),
        repeats("last", 1).trim_end().into(),
    ];
    let desk = Desk::with("runs.jsonl", lines.join(&b"\n"[..]));
    let outcome = desk.run(&["replay", "runs.jsonl", "--json", "--html", "page.html"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let ids = ids(&outcome);
    assert_eq!((ids.first(), ids.last()), (Some(&"first".into()), Some(&"last".into())));
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert!(outcome.stderr.lines().any(|line| line.starts_with("runs.jsonl:2: ")), "{}", outcome.stderr);
}

#[test]
fn a_line_of_100_megabytes_is_skipped_and_told() {
    let desk = Desk::new();
    let mut file = BufWriter::new(File::create(desk.path("big.jsonl")).unwrap());
    file.write_all(b"{\"id\":\"big\",\"steps\":[{\"tool\":\"x\",\"result\":\"").unwrap();
    for _ in 0..100 {
        file.write_all(&vec![b'a'; 1 << 20]).unwrap();
    }
    file.write_all(b"\"}]}\n").unwrap();
    file.write_all(repeats("small", 1).as_bytes()).unwrap();
    file.into_inner().unwrap();
    let outcome = desk.run(&["replay", "big.jsonl", "--json"]);
    assert_eq!((outcome.code, ids(&outcome)), (1, vec!["small".into()]));
    assert!(outcome.stderr.starts_with("big.jsonl:1: "), "{}", outcome.stderr);
}

#[test]
fn escape_codes_of_an_agent_do_not_reach_the_terminal() {
    let desk = Desk::with("runs.jsonl", repeats("\\u001b[31mred\\u0007", 4));
    let outcome = desk.run(&["replay", "runs.jsonl", "--explain"]);
    assert!(!outcome.stdout.contains('\u{1b}') && !outcome.stdout.contains('\u{7}'), "{:?}", outcome.stdout);
}

fn ids(outcome: &Outcome) -> Vec<String> {
    outcome.lines().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}
