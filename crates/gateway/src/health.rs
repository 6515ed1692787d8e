//! How the parts around a request are doing: what `/readyz` says of them, and the first screen of the dashboard.

use std::sync::{Arc, Weak};
use std::time::Duration;

use loopbreaker_observatory::Observatory;
use loopbreaker_telemetry::Part;

use crate::state::Shared;

/// A part that does not do what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ailing {
    pub(crate) part: &'static str,
    pub(crate) reason: String,
}

/// How soon the dashboard knows.
const PAUSE: Duration = Duration::from_secs(1);

impl Shared {
    /// Every part that does not do what it should. A provider that is left alone for a while is none of ours, but
    /// whoever asks why agents stand still wants to read of it first.
    pub(crate) fn ailing(&self) -> Vec<Ailing> {
        let metrics = &self.telemetry.metrics;
        let store = self.observing.failure();
        metrics.set_degraded(Part::Store, store.is_some());
        let placement = self.settings().config.hint.placement;
        metrics.set_degraded(Part::Hint, self.placements.have_run_out(placement));
        let store = store.unwrap_or_default();
        let ours = metrics.degraded().map(|part| Ailing {
            part: part.as_str(),
            reason: what_follows(part).unwrap_or(&store).to_owned(),
        });
        let open = self.open_breakers();
        let upstream = (!open.is_empty()).then(|| Ailing {
            part: "upstream",
            reason: format!("nothing is sent to {} at present", open.join(", ")),
        });
        ours.chain(upstream).collect()
    }
}

/// What it means that a part is away. The store says itself what is wrong.
const fn what_follows(part: Part) -> Option<&'static str> {
    Some(match part {
        Part::Store => return None,
        Part::Body => "bodies are not read",
        Part::Hint => "the provider takes no hints",
        Part::Detector => "a detector failed",
        Part::Semantic => "nothing is compared by what it means",
        Part::State => "each process goes on with its own memory",
        Part::DataDir => "ids and logins end with this process",
        Part::Config => "the running settings are older than the file",
        Part::Log => "log lines are lost",
        Part::Otlp => "spans are lost",
    })
}

/// Tells the observatory what has changed, until one of the two has gone.
pub(crate) async fn tell(owner: Weak<Shared>, observatory: Arc<Observatory>) {
    let mut told: Vec<Ailing> = Vec::new();
    loop {
        let Some(ailing) = owner.upgrade().map(|shared| shared.ailing()) else { return };
        for well in told.iter().filter(|was| !ailing.iter().any(|is| is.part == was.part)) {
            observatory.note_health(well.part, None);
        }
        told = ailing;
        // It knows best how its own store is doing.
        for Ailing { part, reason } in told.iter().filter(|ailing| ailing.part != Part::Store.as_str()) {
            observatory.note_health(part, Some(reason.clone()));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
