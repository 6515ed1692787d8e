//! Outputs that are kept as files. `UPDATE_GOLDEN=1 cargo test` writes them anew; read the difference.

use std::fs;
use std::path::Path;

pub(crate) fn check(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, kept, "{} differs; UPDATE_GOLDEN=1 writes it anew", path.display());
}
