//! What all workers of a gateway share.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use loopbreaker::Timestamp;
use loopbreaker_budget::{Breaker, Ledger};
use loopbreaker_config::Config;
use loopbreaker_telemetry::Telemetry;

use crate::hints::Placements;
use crate::holds::Holds;
use crate::identical::IdenticalRequests;
use crate::identity::Tenants;
use crate::pauses::Pauses;
use crate::secret::Secret;
use crate::sessions::Sessions;
use crate::settings::Settings;
use crate::transcripts::Transcripts;
use crate::upstream::Origin;

/// State and settings of one gateway process.
pub(crate) struct Shared {
    settings: RwLock<Arc<Settings>>,
    pub(crate) secret: Secret,
    pub(crate) tenants: Tenants,
    pub(crate) sessions: Sessions,
    pub(crate) transcripts: Transcripts,
    pub(crate) identical: Arc<IdenticalRequests>,
    pub(crate) ledger: Ledger,
    pub(crate) holds: Arc<Holds>,
    pub(crate) pauses: Pauses,
    pub(crate) placements: Placements,
    pub(crate) telemetry: Telemetry,
    breakers: Mutex<HashMap<Origin, Breaker>>,
    /// Whether the tenant's name in a header is believed.
    pub(crate) trusts_tenant_header: AtomicBool,
    pub(crate) draining: AtomicBool,
    started: Instant,
}

impl fmt::Debug for Shared {
    /// Says nothing about what is in it: there is a secret in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Sessions that are remembered.
    const MAX_SESSIONS: usize = 1_000_000;
    /// Bytes of transcripts that are kept to read the next request faster.
    const MAX_TRANSCRIPT_BYTES: usize = 256 << 20;
    /// Counts of budgets that are kept.
    const MAX_COUNTS: usize = 2_000_000;

    /// A gateway that has seen nothing yet.
    pub(crate) fn new(config: Config, secret: Secret, telemetry: Telemetry) -> Self {
        Self {
            settings: RwLock::new(Arc::new(Settings::compile(config))),
            tenants: Tenants::new(secret.clone()),
            secret,
            sessions: Sessions::new(Self::MAX_SESSIONS),
            transcripts: Transcripts::new(Self::MAX_TRANSCRIPT_BYTES),
            identical: Arc::new(IdenticalRequests::new()),
            ledger: Ledger::new(Self::MAX_COUNTS),
            holds: Arc::new(Holds::new(Arc::clone(&telemetry.metrics))),
            pauses: Pauses::default(),
            placements: Placements::default(),
            telemetry,
            breakers: Mutex::default(),
            trusts_tenant_header: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            started: Instant::now(),
        }
    }

    /// The settings of this moment.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other settings in force. Requests that are under way keep theirs.
    pub(crate) fn reload(&self, config: Config) {
        let settings = Arc::new(Settings::compile(config));
        let before = {
            let mut current = self.settings.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::clone(&settings))
        };
        let detects_alike = before.config.detectors == settings.config.detectors;
        if !detects_alike || before.counts_requests != settings.counts_requests {
            // What was seen with other rules cannot be taken up; transcripts are read again from their bodies.
            self.transcripts.clear();
        }
        if before.config.upstreams.breaker != settings.config.upstreams.breaker {
            self.breakers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// The breaker of an upstream.
    pub(crate) fn breaker(&self, origin: &Origin, settings: &Settings) -> Breaker {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(breaker) = breakers.get(origin) {
            return breaker.clone();
        }
        let config = &settings.config.upstreams.breaker;
        let breaker = Breaker::new(config.failures, config.open_for);
        breakers.insert(origin.clone(), breaker.clone());
        breaker
    }

    /// Upstreams whose breaker is open.
    pub(crate) fn open_breakers(&self) -> Vec<String> {
        let breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let open = breakers.iter().filter(|(_, breaker)| !breaker.is_closed());
        open.map(|(origin, _)| origin.to_string()).collect()
    }

    /// The gateway's own clock, which never jumps: windows, holds and budgets are measured by it.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.started.elapsed().as_millis() as u64)
    }

    /// Whether no new request is taken.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}

/// The time of day, which may jump: only for dates that people write.
pub(crate) fn today() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since.as_millis() as u64)
}
