//! The gateway after the agents have ended: where it is, and how it ends. A dashboard would be named here.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::stage::Stage;
use crate::failure::say;

/// Says where to look while the agents run.
pub(super) fn announce(stage: &Stage) {
    say(&format!("the gateway is at {}\n\n", stage.url));
}

/// Says what is left to look at, and waits for Ctrl-C.
pub(super) fn until_told(runtime: &Runtime, stage: &Stage) -> io::Result<()> {
    let url = &stage.url;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        say(&format!("\nthe gateway stays at {url}; metrics at {url}/metrics; Ctrl-C ends it\n"));
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}
