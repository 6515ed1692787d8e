//! Every config in `tests/bad` is refused with exactly the problems in the `.expected` file beside it.

#![expect(clippy::expect_used, reason = "a file that cannot be read ends its test")]

use std::path::{Path, PathBuf};

use loopbreaker_config::{Config, Problem};

#[test]
fn every_bad_config_is_refused_with_exactly_the_expected_problems() {
    let configs = bad_configs();
    assert!(configs.len() > 100, "only {} configs found", configs.len());
    for path in configs {
        let problems = Config::parse(&read(&path)).expect_err(&path.to_string_lossy());
        let rendered = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n";
        assert_eq!(rendered, read(&path.with_extension("expected")), "{}", path.display());
    }
}

#[test]
fn every_problem_names_a_place_inside_the_text_and_what_to_do() {
    for path in bad_configs() {
        let text = read(&path);
        let problems = Config::parse(&text).expect_err(&path.to_string_lossy());
        for problem in &problems {
            let Problem { line, column, message, hint, .. } = problem;
            let in_line = text.lines().nth(*line as usize - 1).map(|line| line.chars().count() as u64);
            assert!(in_line.is_some_and(|length| *column <= length + 1), "{}: {problem}", path.display());
            assert!(hint.is_some(), "{}: {problem}", path.display());
            assert!(!message.contains('\n') && !message.ends_with('.'), "{}: {problem}", path.display());
        }
        let places: Vec<_> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
        assert!(places.is_sorted(), "{}: {places:?}", path.display());
    }
}

fn bad_configs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let entries = folder.read_dir().expect("tests/bad can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut configs: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    configs.sort();
    configs
}

#[expect(clippy::disallowed_methods, reason = "the crate does no I/O, its golden files are read by the test")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a golden file can be read")
}
