//! The map in `ARCHITECTURE.md` is true: who imports whom, how large files are, what they are called.

#![expect(clippy::unwrap_used, reason = "a file that cannot be read ends its test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which of our own crates each of our crates may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("detect", &[]),
    ("mock", &[]),
    ("dashboard", &[]),
    ("budget", &["loopbreaker"]),
    ("config", &["loopbreaker"]),
    ("dialect", &["loopbreaker"]),
    ("record", &["loopbreaker"]),
    ("telemetry", &["loopbreaker"]),
    ("trace", &["loopbreaker", "loopbreaker-dialect"]),
    ("embed", &["loopbreaker", "loopbreaker-budget", "loopbreaker-config", "loopbreaker-telemetry"]),
    ("fleet", &[]),
    ("observatory", &["loopbreaker", "loopbreaker-record", "loopbreaker-telemetry"]),
    (
        "gateway",
        &[
            "loopbreaker",
            "loopbreaker-budget",
            "loopbreaker-config",
            "loopbreaker-dashboard",
            "loopbreaker-dialect",
            "loopbreaker-embed",
            "loopbreaker-fleet",
            "loopbreaker-observatory",
            "loopbreaker-record",
            "loopbreaker-telemetry",
        ],
    ),
    (
        "cli",
        &[
            "loopbreaker",
            "loopbreaker-budget",
            "loopbreaker-config",
            "loopbreaker-dialect",
            "loopbreaker-embed",
            "loopbreaker-gateway",
            "loopbreaker-mock",
            "loopbreaker-observatory",
            "loopbreaker-record",
            "loopbreaker-telemetry",
            "loopbreaker-trace",
        ],
    ),
    (
        "bench",
        &[
            "loopbreaker",
            "loopbreaker-embed",
            "loopbreaker-mock",
            "loopbreaker-observatory",
            "loopbreaker-record",
        ],
    ),
];

const MAX_LINES: usize = 600;
const NAMES_THAT_SAY_NOTHING: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "types", "manager"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source file of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![workspace().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 40, "the sources were not found");
    found
}

#[test]
fn crates_use_only_what_the_map_allows() {
    let folders: BTreeSet<String> = std::fs::read_dir(workspace().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mapped: BTreeSet<String> = MAY_USE.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders, mapped, "a crate is missing from the map, here and in ARCHITECTURE.md");
    for (name, allowed) in MAY_USE {
        let manifest =
            std::fs::read_to_string(workspace().join("crates").join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.lines().skip_while(|line| !line.starts_with("[dependencies]")).skip(1);
        for line in dependencies.take_while(|line| !line.starts_with("[dev-dependencies]")) {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if dependency.starts_with("loopbreaker") {
                assert!(allowed.contains(&dependency), "{name} uses {dependency}");
            }
        }
    }
}

#[test]
fn no_source_file_has_grown_past_one_idea() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|path| (std::fs::read_to_string(&path).unwrap().lines().count(), path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    for path in sources() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(!NAMES_THAT_SAY_NOTHING.contains(&stem.as_str()), "{}", path.display());
    }
}
