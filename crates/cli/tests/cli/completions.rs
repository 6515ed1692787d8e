use crate::binary::Desk;

#[test]
fn every_shell_gets_a_script_that_knows_the_flags() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let outcome = Desk::new().run(&["completions", shell]);
        assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{shell}");
        assert!(outcome.stdout.contains("fail-on-loop"), "{shell}");
    }
}

#[test]
fn an_unknown_shell_is_a_usage_error() {
    assert_eq!(Desk::new().run(&["completions", "tcsh"]).code, 2);
}
