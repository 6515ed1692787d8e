//! Measures embeddings and whole checks beside the Python peers, and says what the floors say: exit code 1 when one is
//! missed. `scripts/bench-semantic.sh` builds and fetches what it needs.

mod burst;
mod embeddings;
mod peers;
mod redis;
mod sidecar;
mod table;
mod texts;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use table::Report;

/// What the script found or fetched.
pub(crate) struct Places {
    /// ONNX Runtime's library.
    pub(crate) onnxruntime: PathBuf,
    /// The other model file, if it is there.
    pub(crate) other_model: Option<PathBuf>,
    /// The sidecar's binary.
    pub(crate) sidecar: PathBuf,
    /// Redis Stack's server and its search module.
    pub(crate) stack: (PathBuf, PathBuf),
    /// A Python that has the peers, if there is one.
    pub(crate) python: Option<PathBuf>,
    /// Calls of each cell.
    pub(crate) calls: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            writeln!(io::stderr(), "semantic-report: {error}").unwrap_or_default();
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let needed = |name: &str| {
        path(name).ok_or_else(|| format!("{name} is not set: start it by `make bench-semantic`"))
    };
    let places = Places {
        onnxruntime: needed("ORT_DYLIB_PATH")?,
        other_model: path("BENCH_OTHER_MODEL"),
        sidecar: needed("BENCH_SIDECAR")?,
        stack: (needed("BENCH_STACK")?, needed("BENCH_STACK_MODULE")?),
        python: path("BENCH_PYTHON"),
        calls: std::env::var("BENCH_CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(60),
    };
    // The engine is chosen by name in every cell; the environment must not choose for the others.
    let mut report = Report::new()?;
    embeddings::measure(&places, &mut report)?;
    peers::measure(&places, &mut report)?;
    sidecar::measure(&places, &mut report)?;
    burst::measure(&mut report)?;
    report.finish()?;
    Ok(report.holds())
}
