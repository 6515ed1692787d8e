//! Inputs and what is read from them, kept as files. `UPDATE_GOLDEN=1 cargo test` writes the latter anew; read the
//! difference.

#![expect(clippy::disallowed_methods, reason = "the crate reads no files, but its tests keep theirs there")]

use std::fs;
use std::path::{Path, PathBuf};

use loopbreaker_dialect::Dialect;

fn folder(dialect: Dialect) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(dialect.as_str())
}

/// Every input of this kind, with its name.
pub(crate) fn inputs(dialect: Dialect, kind: &str) -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(folder(dialect)).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|name| name.starts_with(kind) && !name.ends_with(".expected")).collect();
    names.sort();
    assert!(!names.is_empty(), "there is no {kind} of {dialect}");
    names.into_iter().map(|name| (name.clone(), fs::read(folder(dialect).join(name)).unwrap())).collect()
}

/// Compares with what is kept under this name.
pub(crate) fn check(dialect: Dialect, name: &str, found: &str) {
    let path = folder(dialect).join(format!("{name}.expected"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, kept, "{} differs; UPDATE_GOLDEN=1 writes it anew", path.display());
}
