//! Several gateways as one: sessions, strikes, windows, budgets and pauses in Redis, Valkey, or a cluster of them.
//!
//! A request asks one [`Ask`], which one script answers in one round trip and within a limit. What it leaves behind is
//! written without anybody who waits for it. While Redis is away, every process goes on with what it knows
//! itself; what was used meanwhile is owed, and written when Redis is back.

mod after;
mod ask;
mod debts;
mod desk;
mod link;
mod listen;
mod order;
mod patience;
mod remembered;
mod scripts;
mod server;
mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;

pub use after::{
    Aftermath, AnswerNamed, AttemptMissed, AttemptOver, ChargeOver, Overspent, Refused, SharedKey, Struck,
    Unit,
};
pub use ask::{
    After, Ask, AttemptAsk, ChargeAsk, KnownPlace, PauseState, Paused, Place, Sightings, Stood, Told,
};
use desk::{Desk, Letter};
pub use desk::{News, Watcher};
pub use link::Link;
pub use listen::Listener;
use order::Decided;
pub use order::{Decision, Heard};
pub use remembered::{Chance, RefusedBefore, Remembered};
use server::Server;

/// Why there is no shared state.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The URL names no server.
    #[error("the address of the shared state cannot be used: {0}")]
    Address(String),
    /// The certificates that are to be trusted cannot be read.
    #[error(
        "the certificates of {} cannot be read: {reason}; `sslrootcert` names a PEM file", path.display()
    )]
    Roots {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// Its thread could not be made.
    #[error("cannot start the thread of the shared state: {0}")]
    Thread(std::io::Error),
}

/// How a fleet is joined.
pub struct Options {
    /// `redis://…`, or `redis+cluster://…` with commas between nodes; `rediss` instead of `redis` for TLS.
    pub url: String,
    /// A PEM file of certificates that are trusted instead of the system's.
    pub roots: Option<PathBuf>,
    /// How long a request waits for an answer; [`Fleet::LIMIT`] unless there is a reason.
    pub limit: Duration,
    /// The secret of this process, which becomes that of all when it is the first.
    pub secret: [u8; 32],
    /// Names this process among the others; any random number.
    pub origin: u64,
    /// Hears what other processes say. It must not block.
    pub listener: Listener,
    /// Hears how the state is doing. It must not block.
    pub watcher: Watcher,
}

impl std::fmt::Debug for Options {
    /// Says nothing of the address, which may hold a password, and of the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// This process as one of several.
#[derive(Clone)]
pub struct Fleet {
    server: Server,
    limit: Duration,
    desk: Desk,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Fleet {
    /// How long a request waits for Redis before it goes on with what its process knows.
    pub const LIMIT: Duration = Duration::from_millis(5);
    /// How long a start waits for the common secret.
    const START: Duration = Duration::from_millis(1_500);

    /// Joins the others. The second value is the secret that all share, or this process's own while Redis is away.
    pub fn join(options: Options) -> Result<(Self, [u8; 32]), FleetError> {
        let Options { url, roots, limit, secret, origin, listener, watcher } = options;
        let read = |path: PathBuf| std::fs::read(&path).map_err(|reason| FleetError::Roots { path, reason });
        let roots = roots.map(read).transpose()?;
        // The error may repeat the address, and with it the password.
        let server =
            Server::at(&url, roots).map_err(|error| FleetError::Address(format!("{:?}", error.kind())))?;
        let (desk, to_do) = Desk::new(watcher, origin);
        let fleet = Self { server: server.clone(), limit, desk: desk.clone() };
        let (found, wait) = mpsc::sync_channel(1);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(FleetError::Thread)?;
        let working = async move {
            let at_start = async {
                let mut connection = server.connect(Self::START).await?;
                listen::common_secret(&mut connection, secret).await
            };
            let asked: Result<Result<_, redis::RedisError>, _> =
                tokio::time::timeout(Self::START, at_start).await;
            let common: Option<[u8; 32]> = match asked {
                Ok(Ok(common)) => Some(common),
                Ok(Err(error)) => {
                    desk.is_away(&error.to_string());
                    None
                }
                Err(_) => {
                    desk.is_away("no answer at the start");
                    None
                }
            };
            // Whoever started us has gone on by now if this took too long.
            found.send(common).unwrap_or_default();
            let known = common.unwrap_or(secret);
            let ears = listen::Ears::new(desk.clone(), origin, Arc::clone(&listener));
            tokio::spawn(listen::listen(server.clone(), known, ears));
            desk::work(desk, server, origin, listener, to_do).await;
        };
        std::thread::Builder::new()
            .name("fleet".to_owned())
            .spawn(move || runtime.block_on(working))
            .map_err(FleetError::Thread)?;
        let common = wait.recv_timeout(Self::START + Duration::from_millis(500)).ok().flatten();
        Ok((fleet, common.unwrap_or(secret)))
    }

    /// The connection of one worker, which belongs to the runtime that this is called in.
    pub fn link(&self) -> Arc<Link> {
        Link::open(self.server.clone(), self.limit, self.desk.clone())
    }

    /// Decides about a tenant's session; `message` goes to the other processes.
    pub fn decide(&self, tenant: u64, session: &str, decision: Decision, message: Option<String>) {
        let session = session.to_owned();
        self.desk.post(Letter::Decide(Decided { tenant, session, decision, message }));
    }

    /// A setting was changed here: every process hears of it, also one that starts later.
    pub fn publish(&self, name: &str, value: String) {
        self.desk.publish(name, value);
    }

    /// Remembers which tenant has a session of that name, by a hash of it.
    pub fn call(&self, name: u64, tenant: &str) {
        self.desk.post(Letter::Name(name, tenant.to_owned()));
    }

    /// Tenants that have a session of that name, by a hash of it; none when Redis is away.
    pub async fn tenants_of(&self, name: u64) -> Vec<String> {
        let (answer, is_answered) = oneshot::channel();
        self.desk.post(Letter::WhoIs(name, answer));
        let waited = tokio::time::timeout(Duration::from_secs(1), is_answered).await;
        waited.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// What was dropped because there was no room for it.
    pub fn lost(&self) -> u64 {
        self.desk.lost()
    }
}
