//! The gateway as a program starts, reloads and stops it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use loopbreaker::{Redundancy, RedundancyConfig, Step};
use loopbreaker_config::Config;
use loopbreaker_fleet::Fleet;
use loopbreaker_telemetry::{Level, Part, ReloadResult, Telemetry};
use tokio::sync::watch;

use crate::certificate::{BadCertificate, acceptor};
use crate::keeping;
use crate::listen::{self, Door, Everybody, Serves};
use crate::opening;
use crate::pipeline::Worker;
use crate::secret::{Secret, close_to_others};
use crate::state::Shared;
use crate::upstream::{Connector, Pool};

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port could not be opened.
    #[error("cannot listen on {0}: {1}; is another program using the port?")]
    Listen(SocketAddr, io::Error),
    /// The certificate to listen with cannot be used.
    #[error(transparent)]
    Certificate(#[from] BadCertificate),
    /// No TLS at all.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A thread or its runtime could not be made.
    #[error("cannot start a worker: {0}")]
    Worker(io::Error),
}

/// A running gateway.
///
/// ```no_run
/// use std::time::Duration;
/// use loopbreaker_config::Config;
/// use loopbreaker_gateway::Gateway;
/// use loopbreaker_telemetry::Telemetry;
///
/// let gateway = Gateway::start(Config::default(), None, 1, Telemetry::quiet())?;
/// println!("listening on http://{}", gateway.address());
/// gateway.stop(Duration::from_secs(30));
/// # Ok::<(), loopbreaker_gateway::StartError>(())
/// ```
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    address: SocketAddr,
    admin_address: Option<SocketAddr>,
    shutdown: watch::Sender<Drain>,
    workers: Vec<JoinHandle<()>>,
}

/// Whether to stop.
type Drain = bool;

impl Gateway {
    /// Starts `workers` threads that serve. `data_dir` keeps what has to survive a restart; without it, or when it
    /// cannot be used, the gateway runs all the same and says so.
    pub fn start(
        config: Config,
        data_dir: Option<PathBuf>,
        workers: usize,
        telemetry: Telemetry,
    ) -> Result<Self, StartError> {
        let (secret, is_kept) = secret(data_dir.as_deref(), &telemetry).map_err(StartError::Worker)?;
        let tls = config.tls.as_ref().map(|tls| acceptor(&tls.cert, &tls.key)).transpose()?;
        let (listen, admin_listen) = (config.listen, config.admin_listen);
        let has_tokens = !config.admin.tokens.is_empty();
        warm_up();
        let shared = Arc::new(Shared::new(config, secret, telemetry, data_dir.as_deref()));
        if let Some(folder) = data_dir.filter(|_| !is_kept) {
            keeping::try_again(&shared, folder).map_err(StartError::Worker)?;
        }
        opening::open(&shared).map_err(StartError::Worker)?;
        shared.mailbox.open(&shared);
        shared.renew_meaning(&shared.settings().config);
        shared.trusts_tenant_header.store(listen.ip().is_loopback(), Ordering::Relaxed);

        let first = listen::open_first(listen).map_err(|error| StartError::Listen(listen, error))?;
        let address = first.local_addr().map_err(|error| StartError::Listen(listen, error))?;
        let admin = admin_listen
            .map(|at| listen::open_first(at).map_err(|error| StartError::Listen(at, error)))
            .transpose()?;
        let admin_address = admin.as_ref().and_then(|listener| listener.local_addr().ok());
        // Whoever can reach the port could pause sessions, so without tokens only this machine may.
        let control = admin_address.is_none() && (address.ip().is_loopback() || has_tokens);
        let serves = Serves { traffic: true, control, is_local: address.ip().is_loopback() };

        let (shutdown, stopping) = watch::channel(false);
        let connector = Arc::new(Connector::new()?);
        let (mut first, mut admin) = (Some(first), admin);
        let mut threads = Vec::new();
        let everybody = Everybody::at(workers.max(1));
        for index in 0..workers.max(1) {
            let listener = match first.take() {
                Some(listener) => listener,
                None => listen::open(address).map_err(|error| StartError::Listen(address, error))?,
            };
            let mut doors = vec![Door { listener, serves, tls: tls.clone() }];
            if let Some(listener) = admin.take() {
                doors.push(Door {
                    listener,
                    serves: Serves {
                        traffic: false,
                        control: true,
                        is_local: admin_address.is_some_and(|at| at.ip().is_loopback()),
                    },
                    tls: tls.clone(),
                });
            }
            let worker =
                Worker { shared: Arc::clone(&shared), pool: Pool::new(Arc::clone(&connector)), link: None };
            let spawned = spawn(index, worker, doors, everybody.clone(), stopping.clone());
            threads.push(spawned.map_err(StartError::Worker)?);
        }
        Ok(Self { shared, address, admin_address, shutdown, workers: threads })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where health, metrics and the API are, when they have a port of their own.
    pub const fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// A handle by which other threads change its settings.
    pub fn handle(&self) -> Handle {
        Handle { shared: Arc::clone(&self.shared) }
    }

    /// Says that it is not ready, lets what is under way end for at most `drain`, and stops.
    pub fn stop(self, drain: Duration) {
        self.shared.draining.send_replace(true);
        self.shared.observing.end_streams();
        self.shutdown.send_replace(true);
        let deadline = std::time::Instant::now() + drain;
        for worker in self.workers {
            while !worker.is_finished() && std::time::Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        if let Some(journal) = self.shared.journal() {
            journal.flush(Duration::from_secs(5));
        }
        self.shared.telemetry.shutdown(Duration::from_secs(2));
    }
}

/// Changes the settings of a running gateway.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// Puts another config in force, without dropping a connection. Where it listens cannot change.
    pub fn reload(&self, config: Config) {
        let policies = config.policies_in_force().len().to_string();
        let waits = wait_for_a_restart(&self.shared.settings().config, &config).join(", ");
        self.shared.reload(config);
        let telemetry = &self.shared.telemetry;
        telemetry.metrics.reloaded(ReloadResult::Loaded);
        telemetry.metrics.set_degraded(Part::Config, false);
        telemetry.log.event(Level::Info, "config reloaded", &[("policies", &policies)]);
        if !waits.is_empty() {
            let what = "some of the new config is in force only after a restart";
            telemetry.log.event(Level::Warn, what, &[("keys", &waits)]);
        }
    }

    /// A config could not be read, so the one in force stays.
    pub fn reload_failed(&self, problem: &str) {
        let telemetry = &self.shared.telemetry;
        telemetry.metrics.reloaded(ReloadResult::Refused);
        telemetry.metrics.set_degraded(Part::Config, true);
        telemetry.log.event(
            Level::Error,
            "config not reloaded; the old one stays in force",
            &[("problem", problem)],
        );
    }
}

/// Compiles what is compiled at its first use, so that no request waits for it.
fn warm_up() {
    let mut detector = Redundancy::new(&RedundancyConfig::default());
    let step = Step::call("bash", r#"{"command":"ls -la /tmp"}"#).answered("total 0", None);
    for round in 0..3 {
        detector.observe(&step.in_round(round));
    }
}

/// What has changed of that which is read at the start only.
fn wait_for_a_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let changed = [
        ("listen", old.listen != new.listen),
        ("admin_listen", old.admin_listen != new.admin_listen),
        ("tls", old.tls != new.tls),
        ("data_dir", old.data_dir != new.data_dir),
        ("state", old.state != new.state),
        ("log", old.log != new.log),
    ];
    changed.into_iter().filter(|(_, is_changed)| *is_changed).map(|(key, _)| key).collect()
}

/// The secret, and whether it is kept where it should be.
fn secret(data_dir: Option<&Path>, telemetry: &Telemetry) -> io::Result<(Secret, bool)> {
    let Some(folder) = data_dir else { return Ok((Secret::random()?, true)) };
    if folder.exists()
        && let Err(error) = close_to_others(folder)
    {
        let (folder, error) = (folder.display().to_string(), error.to_string());
        let fields = [("data_dir", folder.as_str()), ("error", error.as_str())];
        let what = "data folder can be read by other users of this machine and could not be closed to them; \
                    make it `chmod 700`, or set another `data_dir`";
        telemetry.log.event(Level::Warn, what, &fields);
    }
    match Secret::kept_in(folder) {
        Ok(kept) => Ok((kept, true)),
        Err(error) => {
            telemetry.metrics.set_degraded(Part::DataDir, true);
            let (folder, error) = (folder.display().to_string(), error.to_string());
            let fields = [("data_dir", folder.as_str()), ("error", error.as_str())];
            let what = "data folder cannot be used; ids of sessions and logins of the dashboard end with this process \
                        until it can be, which is tried again by itself";
            telemetry.log.event(Level::Warn, what, &fields);
            Ok((Secret::random()?, false))
        }
    }
}

fn spawn(
    index: usize,
    mut worker: Worker,
    doors: Vec<Door>,
    everybody: Everybody,
    stopping: watch::Receiver<Drain>,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(format!("gateway-{index}")).spawn(move || {
        runtime.block_on(async move {
            let link = worker.shared.fleet.as_ref().map(Fleet::link);
            worker.link.clone_from(&link);
            listen::work(worker, doors, everybody, stopping, MAX_DRAIN).await;
            if let Some(link) = link {
                link.written().await;
            }
        });
    })
}

/// Streams that are still open after this long are cut.
const MAX_DRAIN: Duration = Duration::from_secs(600);
