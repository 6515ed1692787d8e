//! `loopbreaker sidecar`: embeddings for several gateways, by gRPC.

use loopbreaker_embed::{SidecarOptions, serve};

use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run() -> Result<Exit, Failure> {
    let hint = "`loopbreaker sidecar --help` lists the variables";
    let options = SidecarOptions::from_env(|name| std::env::var(name).ok())
        .map_err(|error| Failure::told(error.to_string(), hint))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(options)).map_err(|error| Failure::told(error.to_string(), hint))?;
    Ok(Exit::Fine)
}
