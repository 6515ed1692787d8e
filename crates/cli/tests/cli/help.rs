use crate::binary::Desk;
use crate::golden;

#[test]
fn every_help_reads_as_kept() {
    let calls: [(&str, &[&str]); 7] = [
        ("help.txt", &["--help"]),
        ("help-serve.txt", &["serve", "--help"]),
        ("help-replay.txt", &["replay", "--help"]),
        ("help-check.txt", &["check", "--help"]),
        ("help-demo.txt", &["demo", "--help"]),
        ("help-probe.txt", &["probe", "--help"]),
        ("help-completions.txt", &["completions", "--help"]),
    ];
    for (name, args) in calls {
        let outcome = Desk::new().run(args);
        assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
        golden::check(name, &outcome.stdout);
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let outcome = Desk::new().run(&["--version"]);
    assert_eq!(outcome.stdout, format!("loopbreaker {}\n", env!("CARGO_PKG_VERSION")));
}
