//! What all workers of a gateway share.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use loopbreaker::Timestamp;
use loopbreaker_budget::{Breaker, Ledger};
use loopbreaker_config::{Config, KillSwitch, LogPlace, Policy};
use loopbreaker_fleet::{Fleet, Heard};
use loopbreaker_observatory::Order;
use loopbreaker_telemetry::{Level, Part, Telemetry};
use tokio::sync::watch;

use crate::accounts::Accounts;
use crate::agreed::Agreed;
use crate::cache::Cache;
use crate::consider::Case;
use crate::fleet::AttemptIds;
use crate::govern::{Governed, take_over_switch, with_detectors, with_overrides};
use crate::hints::Placements;
use crate::holds::Holds;
use crate::identical::IdenticalRequests;
use crate::identity::Tenants;
use crate::joining::{Mailbox, join};
use crate::journal::{Entry, Journal};
use crate::meaning::Meaning;
use crate::obey::{Obedience, Said, StaysRefused};
use crate::observe::{Observing, Running};
use crate::orders::Orders;
use crate::pauses::Pauses;
use crate::reminders::Reminders;
use crate::secret::Secret;
use crate::sessions::Sessions;
use crate::settings::Settings;
use crate::similar::SimilarRequests;
use crate::transcripts::Transcripts;
use crate::upstream::Origin;

/// State and settings of one gateway process.
pub(crate) struct Shared {
    settings: RwLock<Arc<Settings>>,
    written: Mutex<Written>,
    pub(crate) secret: Secret,
    pub(crate) tenants: Tenants,
    pub(crate) sessions: Sessions,
    pub(crate) transcripts: Transcripts,
    pub(crate) reminders: Reminders,
    pub(crate) identical: Arc<IdenticalRequests>,
    pub(crate) similar: SimilarRequests,
    pub(crate) ledger: Ledger,
    pub(crate) accounts: Accounts,
    pub(crate) holds: Arc<Holds>,
    pub(crate) pauses: Arc<Pauses>,
    pub(crate) orders: Arc<Orders>,
    pub(crate) obedience: Arc<Obedience>,
    /// The other processes that share our state, if there are any, and what they say.
    pub(crate) fleet: Option<Fleet>,
    pub(crate) mailbox: Arc<Mailbox>,
    agreed: Arc<Agreed>,
    pub(crate) attempt_ids: AttemptIds,
    pub(crate) observing: Observing,
    meaning: RwLock<Option<Arc<Meaning>>>,
    pub(crate) cache: Cache,
    pub(crate) placements: Placements,
    pub(crate) telemetry: Telemetry,
    breakers: Mutex<Vec<(Origin, Breaker)>>,
    /// Whether the tenant's name in a header is believed.
    pub(crate) trusts_tenant_header: AtomicBool,
    pub(crate) draining: watch::Sender<bool>,
    pub(crate) clock: Clock,
}

/// The config as it was read, and what stands above it.
struct Written {
    config: Config,
    /// Policies in place of its own.
    policies: Vec<Policy>,
    /// Kill switches beside its own, by the ids under which they were thrown.
    switches: Vec<(String, KillSwitch)>,
}

/// The gateway's own clock, which never jumps: windows, holds and budgets are measured by it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// Time since the start.
    pub(crate) fn now(self) -> Timestamp {
        self.at(Instant::now())
    }

    /// The time that it was at this moment.
    fn at(self, moment: Instant) -> Timestamp {
        Timestamp::from_millis(moment.duration_since(self.0).as_millis() as u64)
    }
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
    pub(crate) fn new(config: Config, secret: Secret, telemetry: Telemetry, data_dir: Option<&Path>) -> Self {
        let observing = Observing::wanted(&config, data_dir);
        let clock = Clock(Instant::now());
        let shares_log = matches!(config.log.place, LogPlace::Postgres(_));
        let random = Secret::random().map_or(0, |random| random.hash("attempts", &[]) as u64);
        let obedience = Arc::new(Obedience::new(clock, shares_log, random));
        let mailbox = Arc::<Mailbox>::default();
        let fleet = join(&config.state, &secret, &mailbox, &telemetry).unwrap_or_else(|error| {
            telemetry.metrics.set_degraded(Part::State, true);
            telemetry.log.event(Level::Error, "state is not shared", &[("problem", &error.to_string())]);
            None
        });
        if let Some(fleet) = &fleet {
            obedience.join(fleet);
        }
        Self {
            written: Mutex::new(Written {
                config: config.clone(),
                policies: Vec::new(),
                switches: Vec::new(),
            }),
            settings: RwLock::new(Arc::new(Settings::compile(config))),
            tenants: Tenants::new(secret.clone()),
            secret,
            sessions: Sessions::new(Self::MAX_SESSIONS),
            transcripts: Transcripts::new(Self::MAX_TRANSCRIPT_BYTES),
            reminders: Reminders::default(),
            identical: Arc::new(IdenticalRequests::new()),
            similar: SimilarRequests::new(),
            ledger: Ledger::new(Self::MAX_COUNTS),
            accounts: Accounts::default(),
            holds: Arc::new(Holds::new(Arc::clone(&telemetry.metrics))),
            pauses: Arc::clone(&obedience.pauses),
            orders: Arc::clone(&obedience.orders),
            obedience,
            fleet,
            mailbox,
            agreed: Arc::default(),
            attempt_ids: AttemptIds::from(random),
            observing,
            meaning: RwLock::default(),
            cache: Cache::default(),
            placements: Placements::default(),
            telemetry,
            breakers: Mutex::default(),
            trusts_tenant_header: AtomicBool::new(false),
            draining: watch::Sender::new(false),
            clock,
        }
    }

    /// Hears what another process says.
    pub(crate) fn hear(&self, heard: Heard) {
        match heard {
            Heard::Order { place, message, is_old } => {
                if let Some(said) = Said::read(&message).filter(|said| self.obedience.is_news(said)) {
                    self.obedience.hear(&said, is_old);
                    self.agreed.hear_order(said.elsewhere(place, is_old));
                } else if let Some(refused) = StaysRefused::read(&message) {
                    self.obedience.hear_refusal(&refused, is_old);
                }
            }
            Heard::Setting { name, value } => {
                take_over_switch(self, &value);
                self.agreed.hear(name, &value);
            }
            Heard::Secret(secret) => {
                // Whoever started while Redis was away has called sessions by other names until now.
                self.secret.adopt(secret);
                self.tenants.forget();
            }
        }
    }

    /// The agent of a request has been told what an operator ordered.
    pub(crate) fn handed_out(&self, case: &Case<'_>, order: Order) {
        if let Some(running) = self.observing.running() {
            let anchor = Some(case.tip);
            running.observatory.handed_out(&case.tenant.name, &case.account_name, order, anchor);
        }
    }

    /// Who compares what is said, if anybody does.
    pub(crate) fn meaning(&self) -> Option<Arc<Meaning>> {
        self.meaning.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a new one in place, with nothing remembered. Without one nothing is compared, and that is told.
    pub(crate) fn renew_meaning(&self, config: &Config) {
        let made = Meaning::of(config);
        let problem = made.as_ref().err().cloned();
        let made = made.ok().flatten().map(Arc::new);
        *self.meaning.write().unwrap_or_else(PoisonError::into_inner) = made;
        self.telemetry.metrics.set_degraded(Part::Semantic, problem.is_some());
        if let Some(problem) = problem {
            let fields = [("problem", problem.as_str())];
            self.telemetry.log.event(Level::Error, "the semantic detector is off", &fields);
        }
    }

    /// The store is open: traffic is written down from now on, and what people have ordered and changed is in force.
    pub(crate) fn begin_to_keep(self: &Arc<Self>, running: Running) {
        running.obey(&self.obedience);
        let running = {
            // The config may have been read again since the store was first tried, and not at this very moment.
            let written = self.written();
            running.observatory.rewritten(written.config.detectors.clone());
            self.observing.begin(running)
        };
        running.observatory.govern(Arc::new(Governed::of(self)));
        if self.obedience.must_be_told_elsewhere() {
            running.agree(&self.agreed);
        }
        running.watch_over(self);
        // What was said before is written down with the next request that repeats it.
        self.transcripts.clear();
    }

    /// Where traffic is written down, if it is.
    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.observing.running().map(|running| &running.journal)
    }

    /// Writes something down, if anything is.
    pub(crate) fn tell(&self, entry: impl FnOnce() -> Entry) {
        if let Some(journal) = self.journal() {
            journal.tell(entry());
        }
    }

    /// The settings of this moment.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another config in force, below what was changed at run time.
    pub(crate) fn reload(&self, config: Config) {
        let mut written = self.written();
        self.observing.rewritten(&config);
        written.config = config;
        self.put_in_force(self.changed_at_run_time(&written));
    }

    /// Puts policies in force above those of the config.
    pub(crate) fn set_overrides(&self, policies: Vec<Policy>) {
        let mut written = self.written();
        if written.policies != policies {
            written.policies = policies;
            self.put_in_force(self.changed_at_run_time(&written));
        }
    }

    /// Puts kill switches in force beside those of the config: what is made of those that are so now.
    pub(crate) fn change_switches(&self, change: impl FnOnce(&mut Vec<(String, KillSwitch)>)) {
        let mut written = self.written();
        let before = written.switches.clone();
        change(&mut written.switches);
        if written.switches != before {
            self.put_in_force(self.changed_at_run_time(&written));
        }
    }

    /// Puts thresholds in force that were changed at run time.
    pub(crate) fn renew_settings(&self) {
        self.put_in_force(self.changed_at_run_time(&self.written()));
    }

    /// The config that was read, with everything above it that people have changed since.
    fn changed_at_run_time(&self, written: &Written) -> Config {
        let mut config = written.config.clone();
        if let Some(running) = self.observing.running() {
            config = with_detectors(config, &running.observatory.detectors());
        }
        config.kill_switches.extend(written.switches.iter().map(|(_, switch)| switch.clone()));
        with_overrides(config, &written.policies)
    }

    /// The policies that stand above those of the config.
    pub(crate) fn overrides(&self) -> Vec<Policy> {
        self.written().policies.clone()
    }

    /// Every kill switch; those of the config have no id.
    pub(crate) fn kill_switches(&self) -> Vec<(Option<String>, KillSwitch)> {
        let written = self.written();
        let own = written.config.kill_switches.iter().map(|switch| (None, switch.clone()));
        own.chain(written.switches.iter().map(|(id, switch)| (Some(id.clone()), switch.clone()))).collect()
    }

    /// Whether the config has no policy of its own.
    pub(crate) fn is_default_policy(&self) -> bool {
        self.written().config.policies.is_empty()
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that are under way keep the settings that they began with.
    fn put_in_force(&self, config: Config) {
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
        let compares_alike = before.compares == settings.compares
            && before.config.semantic == settings.config.semantic
            && before.config.detectors.semantic == settings.config.detectors.semantic;
        if !compares_alike {
            self.renew_meaning(&settings.config);
        }
        if before.config.upstreams.breaker != settings.config.upstreams.breaker {
            self.breakers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// The breaker of an upstream.
    pub(crate) fn breaker(&self, origin: &Origin, settings: &Settings) -> Breaker {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, breaker)) = breakers.iter().find(|(known, _)| known == origin) {
            return breaker.clone();
        }
        let config = &settings.config.upstreams.breaker;
        let breaker = Breaker::new(config.failures, config.open_for);
        breakers.push((origin.clone(), breaker.clone()));
        breaker
    }

    /// Upstreams whose breaker is open.
    pub(crate) fn open_breakers(&self) -> Vec<String> {
        let breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let open = breakers.iter().filter(|(_, breaker)| !breaker.is_closed());
        open.map(|(origin, _)| origin.to_string()).collect()
    }

    /// The gateway's own time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time that it was at this moment, for whoever has looked at the clock already.
    pub(crate) fn at(&self, moment: Instant) -> Timestamp {
        self.clock.at(moment)
    }

    /// Whether no new request is taken.
    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until it is on its way out.
    pub(crate) async fn drains(&self) {
        // What says so lives as long as this.
        drop(self.draining.subscribe().wait_for(|drains| *drains).await);
    }
}

/// The time of day, which may jump: only for dates that people write.
pub(crate) fn today() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since.as_millis() as u64)
}
