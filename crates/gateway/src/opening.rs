//! Opening the store of the log: at the start, and again until it can be.
//!
//! A server or a disk that is away when the gateway starts costs what is not written down until it is back, and nothing
//! else: requests are served, and nobody has to restart anything.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use loopbreaker_observatory::Options;
use loopbreaker_telemetry::{Level, Part};

use crate::observe::Running;
use crate::state::Shared;

/// How long the start waits for the store. Whatever takes longer, as an update of a large database does, is finished
/// while requests are served.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after a first failure the store is tried again; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Short enough for a store that is back to be used soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Opens the store that the config names, if it names one. It is usually open when this returns.
pub(crate) fn open(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(options) = shared.observing.options().cloned() else { return Ok(()) };
    let (tried, first) = channel();
    let owner = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("opening".to_owned());
    thread.spawn(move || keep_trying(&options, &owner, &tried))?;
    if first.recv_timeout(PATIENCE).is_err()
        && let Some(problem) = shared.observing.failure()
    {
        tell_of(shared, &problem);
    }
    Ok(())
}

/// Tries until the store is open or the gateway has gone; says after each attempt that it was made.
fn keep_trying(options: &Options, owner: &Weak<Shared>, tried: &Sender<()>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let opened = Running::start(options.clone());
        let Some(shared) = owner.upgrade() else { return };
        match opened {
            Ok(running) => {
                shared.begin_to_keep(running);
                shared.telemetry.metrics.set_degraded(Part::Store, false);
                let is_awaited = tried.send(()).is_ok();
                if !is_awaited {
                    let missed = shared.observing.missed().to_string();
                    let fields = [("requests_not_written", missed.as_str())];
                    shared.telemetry.log.event(Level::Info, "decisions are kept from now on", &fields);
                }
                return;
            }
            Err(problem) => {
                if shared.observing.not_yet(problem.clone()) {
                    tell_of(&shared, &problem);
                }
                // Nobody waits for any but the first.
                tried.send(()).unwrap_or_default();
            }
        }
        drop(shared);
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Says that nothing is kept although it should be. Requests are served all the same.
fn tell_of(shared: &Shared, problem: &str) {
    shared.telemetry.metrics.set_degraded(Part::Store, true);
    let fields = [("problem", problem)];
    shared.telemetry.log.event(Level::Error, "decisions cannot be kept; requests go on", &fields);
}
