//! The thread that writes what no link could, and what operators decide; and reads what others have to say.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{RedisError, ScriptInvocation};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::after::{Aftermath, Overspent};
use crate::debts::Debts;
use crate::listen::Listener;
use crate::order::{Decided, Heard, ORDERS};
use crate::scripts::{ORDER, about};
use crate::server::{Connection, Server};
use crate::settings::{SETTINGS, Settings, writing};

/// Where the secret is that everybody's ids are keyed with.
pub(crate) const SECRET: &str = "{lb}:secret";

/// Hears how the shared state is doing.
pub type Watcher = Box<dyn Fn(News<'_>) + Send + Sync>;

/// How the shared state is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News<'n> {
    /// It is away, for this reason.
    Away(&'n str),
    /// It is back.
    Back,
    /// While it was away, more was spent than a budget allows.
    Overspent(Overspent),
}

/// A handle to the thread.
#[derive(Clone)]
pub(crate) struct Desk {
    letters: mpsc::Sender<Letter>,
    state: Arc<State>,
}

struct State {
    away: AtomicBool,
    /// Why it is away, as far as that was told. Whoever tells holds it, so that the last that is told is how it is.
    told: Mutex<Vec<String>>,
    watcher: Watcher,
    debts: Mutex<Debts>,
    settings: Settings,
    dropped: AtomicU64,
    /// Numbers what is written.
    numbers: AtomicU64,
    /// Whether what is owed is going to be tried again.
    settles_soon: AtomicBool,
}

/// What the thread is asked to do.
pub(crate) enum Letter {
    /// Write what a request left behind.
    Leave(Aftermath),
    /// Decide about a session, and tell the others.
    Decide(Decided),
    /// Write a setting that was changed here.
    Publish(String),
    /// Remember whose session is called so: a hash of its name, and its tenant.
    Name(u64, String),
    /// Whose sessions are called so?
    WhoIs(u64, oneshot::Sender<Vec<String>>),
    /// Redis is back: write what is owed.
    Settle,
}

impl Desk {
    /// Letters that may wait; beyond it what was used is owed, and the rest is dropped and counted.
    const MAX_LETTERS: usize = 16_384;

    /// So many different reasons are told while Redis is away.
    const MAX_REASONS: usize = 8;

    /// A desk, and what has to be worked on.
    pub(crate) fn new(watcher: Watcher, origin: u64) -> (Self, mpsc::Receiver<Letter>) {
        let (letters, to_do) = mpsc::channel(Self::MAX_LETTERS);
        let state = State {
            away: AtomicBool::new(false),
            told: Mutex::default(),
            watcher,
            debts: Mutex::new(Debts::none()),
            settings: Settings::default(),
            dropped: AtomicU64::new(0),
            numbers: AtomicU64::new(origin),
            settles_soon: AtomicBool::new(false),
        };
        (Self { letters, state: Arc::new(state) }, to_do)
    }

    /// Gives it a number that no other one has, unless it has one: it counts once, however often it is written.
    pub(crate) fn numbered(&self, mut aftermath: Aftermath) -> Aftermath {
        if aftermath.number == 0 {
            aftermath.number = self.state.numbers.fetch_add(1, Ordering::Relaxed).max(1);
        }
        aftermath
    }

    /// Writes what a request left behind and nobody has tried to write yet, later.
    pub(crate) fn leave(&self, aftermath: Aftermath) {
        if self.state.away.load(Ordering::Acquire) {
            self.debts().owe(&aftermath);
            self.settle_if_back();
        } else if let Err(full) = self.letters.try_send(Letter::Leave(aftermath))
            && let Letter::Leave(aftermath) = full.into_inner()
        {
            self.debts().owe(&aftermath);
        }
    }

    /// Writes again what may have been written.
    pub(crate) fn leave_again(&self, aftermath: Aftermath) {
        self.debts().owe_again(aftermath);
        self.settle_if_back();
    }

    /// It may have come back at this very moment, and has been paid what was owed until then.
    fn settle_if_back(&self) {
        if !self.state.away.load(Ordering::Acquire) {
            self.post(Letter::Settle);
        }
    }

    /// Hands over anything else; what has no room is counted.
    pub(crate) fn post(&self, letter: Letter) {
        if self.letters.try_send(letter).is_err() {
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes a setting that was changed here, and tells the others. It is kept until that is done.
    pub(crate) fn publish(&self, name: &str, value: String) {
        self.state.settings.change(name, value);
        self.post(Letter::Publish(name.to_owned()));
    }

    /// What is known of settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// A link that was there is gone.
    pub(crate) fn went(&self, reason: &str) {
        self.is_away(reason);
    }

    /// A link cannot be made.
    pub(crate) fn is_away(&self, reason: &str) {
        let mut told = self.told();
        self.state.away.store(true, Ordering::Release);
        // What ended the connection need not be what keeps it from being made again, such as a password that has changed.
        if told.len() < Self::MAX_REASONS && !told.iter().any(|earlier| earlier == reason) {
            told.push(reason.to_owned());
            (self.state.watcher)(News::Away(reason));
        }
    }

    /// A link works.
    pub(crate) fn came_back(&self) {
        let mut told = self.told();
        if self.state.away.swap(false, Ordering::AcqRel) {
            told.clear();
            (self.state.watcher)(News::Back);
        }
        drop(told);
        self.post(Letter::Settle);
    }

    fn told(&self) -> MutexGuard<'_, Vec<String>> {
        self.state.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// More was spent than there was.
    pub(crate) fn overspent(&self, all: Vec<Overspent>) {
        for overspent in all {
            (self.state.watcher)(News::Overspent(overspent));
        }
    }

    /// What could not be remembered of what was used while Redis was away, and what had no room in the queue.
    pub(crate) fn lost(&self) -> u64 {
        self.debts().forgotten() + self.state.dropped.load(Ordering::Relaxed)
    }

    fn debts(&self) -> MutexGuard<'_, Debts> {
        self.state.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works until nobody can send anything any more.
pub(crate) async fn work(
    desk: Desk,
    server: Server,
    origin: u64,
    listener: Listener,
    mut to_do: mpsc::Receiver<Letter>,
) {
    let clerk = Arc::new(Clerk {
        desk,
        server,
        origin,
        listener,
        open: tokio::sync::Mutex::new(None),
        undelivered: Mutex::default(),
        at_once: Arc::new(Semaphore::new(Clerk::AT_ONCE)),
    });
    // Decisions are told in the order in which they were made, by one; nothing else waits for them.
    let (decisions, mut decided) = mpsc::channel(Clerk::MAX_UNDELIVERED);
    let teller = Arc::clone(&clerk);
    tokio::spawn(async move {
        while let Some(letter) = decided.recv().await {
            match letter {
                Letter::Decide(decided) => teller.undelivered().push_back(decided),
                Letter::Publish(name) => teller.publish(&name).await,
                Letter::Leave(_) | Letter::Name(..) | Letter::WhoIs(..) | Letter::Settle => {}
            }
            teller.deliver().await;
        }
    });
    while let Some(letter) = to_do.recv().await {
        if matches!(letter, Letter::Settle) {
            // What could not be told before is told again, in its order. A teller with much to do does so anyway.
            drop(decisions.try_send(Letter::Settle));
            clerk.settle_debts();
            continue;
        }
        if matches!(letter, Letter::Decide(_) | Letter::Publish(_)) {
            if decisions.try_send(letter).is_err() {
                clerk.desk.state.dropped.fetch_add(1, Ordering::Relaxed);
            }
            continue;
        }
        let Ok(permit) = Arc::clone(&clerk.at_once).acquire_owned().await else { return };
        let clerk = Arc::clone(&clerk);
        tokio::spawn(async move {
            clerk.do_it(letter).await;
            drop(permit);
        });
    }
}

struct Clerk {
    desk: Desk,
    server: Server,
    /// Names this process among the others.
    origin: u64,
    listener: Listener,
    open: tokio::sync::Mutex<Option<Connection>>,
    /// Decisions that have not reached Redis yet, oldest first: they are told when it is back.
    undelivered: Mutex<VecDeque<Decided>>,
    at_once: Arc<Semaphore>,
}

impl Clerk {
    /// So much is written at the same time.
    const AT_ONCE: usize = 256;
    const MAX_UNDELIVERED: usize = 1_000;
    /// Messages that are kept for processes that were away; about.
    const MAX_TOLD: usize = 10_000;
    /// They go when nothing has been said for so long; a process that was away for longer begins anew.
    const TOLD_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);
    /// What could not be written is tried again after this.
    const TRY_AGAIN: Duration = Duration::from_millis(500);
    /// How long an answer may take here, where nobody waits.
    const PATIENCE: Duration = Duration::from_secs(2);

    async fn do_it(&self, letter: Letter) {
        match letter {
            Letter::Leave(aftermath) => self.leave(self.desk.numbered(aftermath)).await,
            // They have gone another way.
            Letter::Decide(_) | Letter::Publish(_) | Letter::Settle => {}
            Letter::Name(name, tenant) => {
                let key = named(name);
                let mut adding = redis::cmd("SADD");
                adding.arg(&key).arg(tenant);
                let mut expiring = redis::cmd("EXPIRE");
                expiring.arg(&key).arg(7 * 24 * 3_600);
                for command in [adding, expiring] {
                    drop(self.run(async |connection| command.query_async::<()>(connection).await).await);
                }
            }
            Letter::WhoIs(name, answer) => {
                let asking = redis::cmd("SMEMBERS").arg(named(name)).to_owned();
                let found: Result<Vec<String>, _> =
                    self.run(async |connection| asking.query_async(connection).await).await;
                // Nobody listens any more when it has taken too long.
                drop(answer.send(found.unwrap_or_default()));
            }
        }
    }

    /// Writes what is owed, one after the other, while everything else goes on.
    fn settle_debts(self: &Arc<Self>) {
        let owed = self.desk.debts().take();
        if owed.is_empty() {
            return;
        }
        let clerk = Arc::clone(self);
        tokio::spawn(async move {
            for aftermath in owed {
                clerk.leave(clerk.desk.numbered(aftermath)).await;
            }
        });
    }

    async fn leave(&self, aftermath: Aftermath) {
        if let Ok(overspent) = self.run(async |connection| aftermath.write(connection).await).await {
            self.desk.overspent(overspent);
        } else {
            self.desk.debts().owe_again(aftermath);
            self.settle_soon();
        }
    }

    /// Tries again in a while what could not be written, also where the link was there all the time.
    fn settle_soon(&self) {
        if self.desk.state.settles_soon.swap(true, Ordering::AcqRel) {
            return;
        }
        let desk = self.desk.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Self::TRY_AGAIN).await;
            desk.state.settles_soon.store(false, Ordering::Release);
            desk.post(Letter::Settle);
        });
    }

    /// Tells what was decided, in the order in which it was, until one cannot be told.
    async fn deliver(&self) {
        loop {
            let Some(decided) = self.undelivered().front().cloned() else { return };
            if self.decide(&decided).await.is_err() {
                let mut undelivered = self.undelivered();
                while undelivered.len() > Self::MAX_UNDELIVERED {
                    undelivered.pop_front();
                    self.desk.state.dropped.fetch_add(1, Ordering::Relaxed);
                }
                drop(undelivered);
                return self.settle_soon();
            }
            self.undelivered().pop_front();
        }
    }

    async fn decide(&self, decided: &Decided) -> Result<(), RedisError> {
        let mut call = about(&ORDER, decided.tenant);
        decided.write(&mut call);
        let written = self.run_script::<u8>(&call).await?;
        match &decided.message {
            Some(message) if written != OUTDATED => self.tell(message).await,
            _ => Ok(()),
        }
    }

    fn undelivered(&self) -> MutexGuard<'_, VecDeque<Decided>> {
        self.undelivered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn publish(&self, name: &str) {
        let settings = self.desk.settings();
        let Some((number, value)) = settings.unwritten(name) else { return };
        if self.run_script::<u8>(&writing(name, &value, None, self.origin)).await.is_err() {
            let (desk, name) = (self.desk.clone(), name.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep(Self::TRY_AGAIN).await;
                // One that was changed again is on its way by itself.
                if desk.settings().unwritten(&name).is_some_and(|(newest, _)| newest == number) {
                    desk.post(Letter::Publish(name));
                }
            });
            return;
        }
        settings.written(name, number);
        // Somebody else may have changed it after us, and what was said of that was not heard while ours was on its way.
        let reading = redis::cmd("HGET").arg(SETTINGS).arg(name).to_owned();
        let kept: Result<Option<String>, _> =
            self.run(async |connection| reading.query_async(connection).await).await;
        if let Some(value) = kept.ok().flatten().and_then(|kept| settings.read(name, &kept)) {
            (self.listener)(Heard::Setting { name: name.to_owned(), value });
        }
    }

    async fn tell(&self, body: &str) -> Result<(), RedisError> {
        let mut telling = redis::cmd("XADD");
        telling.arg(ORDERS).arg("MAXLEN").arg("~").arg(Self::MAX_TOLD).arg("*");
        telling.arg("from").arg(self.origin).arg("body").arg(body);
        self.run(async |connection| telling.query_async::<String>(connection).await).await?;
        let mut expiring = redis::cmd("EXPIRE");
        expiring.arg(ORDERS).arg(Self::TOLD_FOR.as_secs());
        // It is told, and the next one makes it expire.
        drop(self.run(async |connection| expiring.query_async::<()>(connection).await).await);
        Ok(())
    }

    async fn run_script<T: redis::FromRedisValue>(
        &self,
        call: &ScriptInvocation<'_>,
    ) -> Result<T, RedisError> {
        self.run(async |connection| call.invoke_async(connection).await).await
    }

    /// Runs something on the desk's own connection, which is made anew after a failure.
    async fn run<T>(
        &self,
        command: impl AsyncFnOnce(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, RedisError> {
        let mut connection = {
            let mut open = self.open.lock().await;
            match &*open {
                Some(connection) => connection.clone(),
                None => open.insert(self.server.connect(Self::PATIENCE).await?).clone(),
            }
        };
        let done = command(&mut connection).await;
        if done
            .as_ref()
            .is_err_and(|error| error.is_unrecoverable_error() || error.is_io_error() || error.is_timeout())
        {
            *self.open.lock().await = None;
        }
        done
    }
}

/// What the script says of a decision that another one has followed since: nobody is told of it.
const OUTDATED: u8 = 2;

/// The key under which the tenants of a session's name are.
fn named(name: u64) -> String {
    format!("{{lb}}:n:{name:016x}")
}
