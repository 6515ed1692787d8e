//! Keeping the secret in a data folder that could not be used at the start, as soon as it can be.
//!
//! Until then ids and logins are those of this process, and end with it.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use loopbreaker_telemetry::{Level, Part};

use crate::state::Shared;

/// How long after a failure the folder is tried again; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Short enough for a folder that is back to be used soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Tries the folder again, on a thread of its own, until the secret is kept or the gateway has gone.
pub(crate) fn try_again(shared: &Arc<Shared>, folder: PathBuf) -> io::Result<()> {
    let owner = Arc::downgrade(shared);
    std::thread::Builder::new().name("data-folder".to_owned()).spawn(move || keep_trying(&owner, &folder))?;
    Ok(())
}

fn keep_trying(owner: &Weak<Shared>, folder: &std::path::Path) {
    let mut pause = FIRST_PAUSE;
    loop {
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        let Some(shared) = owner.upgrade() else { return };
        let Ok(kept) = shared.secret.settled_in(folder) else { continue };
        // Processes that share their state have a secret in common, and that is the one that counts.
        let is_another = shared.fleet.is_none() && kept.bytes() != shared.secret.bytes();
        if is_another {
            shared.secret.adopt(kept.bytes());
            shared.tenants.forget();
        }
        shared.telemetry.metrics.set_degraded(Part::DataDir, false);
        let what = if is_another {
            "data folder can be used; ids are those of before from now on, and whoever has logged in must do so again"
        } else {
            "data folder can be used; ids and logins last over a restart from now on"
        };
        let folder = folder.display().to_string();
        shared.telemetry.log.event(Level::Info, what, &[("data_dir", folder.as_str())]);
        return;
    }
}
