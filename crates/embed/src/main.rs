//! The sidecar alone, for tests and for images that need nothing else.

use std::io::{self, Write};
use std::process::ExitCode;

use loopbreaker_embed::{SidecarOptions, serve};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "embedding-sidecar: {error}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let options = SidecarOptions::from_env(|name| std::env::var(name).ok())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(options))?;
    Ok(())
}
