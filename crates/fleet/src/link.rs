//! One worker's connection: asked within a limit, left alone while it is away, and tried again by itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use crate::after::Aftermath;
use crate::ask::{Ask, Reply, Told};
use crate::desk::Desk;
use crate::patience::within;
use crate::scripts::{AFTER, ASK, about};
use crate::server::{Connection, Server};

/// The connection of one worker. It belongs to the runtime that it was opened in.
pub struct Link {
    server: Server,
    limit: Duration,
    desk: Desk,
    open: Mutex<Option<Connection>>,
    /// Whether it was tried for the first time, with whatever success.
    tried: watch::Sender<bool>,
    /// Somebody has found that it is gone.
    lost: Arc<Notify>,
    /// How much of what requests left behind is being written.
    writing: watch::Sender<usize>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Link {
    /// How long a worker that ends waits for what is being written.
    const FAREWELL: Duration = Duration::from_secs(1);

    /// A link that connects in the background of this runtime.
    pub(crate) fn open(server: Server, limit: Duration, desk: Desk) -> Arc<Self> {
        let link = Arc::new(Self {
            server,
            limit,
            desk,
            open: Mutex::default(),
            tried: watch::Sender::new(false),
            lost: Arc::default(),
            writing: watch::Sender::new(0),
        });
        tokio::spawn(maintain(Arc::downgrade(&link)));
        link
    }

    /// Asks. `None` when there is no answer within the limit: whoever asks goes on with what it knows itself.
    pub async fn ask(&self, ask: &Ask) -> Option<Told> {
        if ask.awaits_answer {
            for pause in ON_ITS_WAY {
                if let Some(told) = self.ask_once(ask, true).await?.0 {
                    return Some(told);
                }
                tokio::time::sleep(pause).await;
            }
        }
        self.ask_once(ask, false).await?.0
    }

    async fn ask_once(&self, ask: &Ask, waits: bool) -> Option<Reply> {
        let mut connection = self.connection_at_last().await?;
        let mut call = about(&ASK, ask.tenant);
        ask.write(&mut call, waits);
        let mut asking: std::pin::Pin<Box<dyn Future<Output = Result<Reply, RedisError>> + Send>> =
            Box::pin(async move { call.invoke_async(&mut connection).await });
        match within(self.limit, asking.as_mut()).await {
            Some(Ok(reply)) => Some(reply),
            // The slot of this tenant is moving; all others are there.
            Some(Err(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::TryAgain) => None,
            Some(Err(error)) => {
                self.lose(&error.to_string());
                None
            }
            None => {
                self.lose(&format!("no answer within {:?}", self.limit));
                // What comes too late has been counted all the same, and must not be.
                let (desk, ask) = (self.desk.clone(), ask.clone());
                tokio::spawn(async move {
                    if let Ok(Reply(Some(told))) = asking.await {
                        desk.leave(undone(&ask, &told));
                    }
                });
                None
            }
        }
    }

    /// Writes what must be known everywhere before an answer is given, within the limit; else it is written later.
    pub async fn write(&self, aftermath: Aftermath) {
        let aftermath = self.desk.numbered(aftermath);
        let written = async {
            let mut connection = self.connection()?;
            aftermath.write(&mut connection).await.ok()
        };
        let written = within(self.limit, Box::pin(written).as_mut()).await.flatten();
        match written {
            Some(overspent) => self.desk.overspent(overspent),
            None => self.desk.leave_again(aftermath),
        }
    }

    /// Writes what a request left behind, without anybody who waits. It goes the way of the questions, so that the next
    /// one of this worker finds it written; where that way is closed, it is written later.
    pub fn leave(&self, aftermath: Aftermath) {
        if aftermath.is_empty() {
            return;
        }
        let (Some(mut connection), Ok(runtime)) = (self.connection(), Handle::try_current()) else {
            return self.desk.leave(aftermath);
        };
        let (desk, writing) = (self.desk.clone(), self.writing.clone());
        let aftermath = desk.numbered(aftermath);
        writing.send_modify(|count| *count += 1);
        runtime.spawn(async move {
            match aftermath.write(&mut connection).await {
                Ok(overspent) => desk.overspent(overspent),
                Err(_) => desk.leave_again(aftermath),
            }
            writing.send_modify(|count| *count -= 1);
        });
    }

    /// Waits until everything that was left is written, for a second at most: a worker that ends takes what is
    /// on its way with it.
    pub async fn written(&self) {
        let mut writing = self.writing.subscribe();
        // Longer than that nobody waits for a process to end.
        drop(tokio::time::timeout(Self::FAREWELL, writing.wait_for(|count| *count == 0)).await);
    }

    /// Whether it is connected.
    pub fn is_there(&self) -> bool {
        self.connection().is_some()
    }

    fn connection(&self) -> Option<Connection> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first requests of a process may come before its first connection is there: they wait for it within the
    /// limit. Later nobody waits.
    async fn connection_at_last(&self) -> Option<Connection> {
        if !*self.tried.borrow() {
            let mut tried = self.tried.subscribe();
            // When it takes too long there is no connection, which is all that matters.
            drop(tokio::time::timeout(self.limit, tried.wait_for(|tried| *tried)).await);
        }
        self.connection()
    }

    fn lose(&self, reason: &str) {
        let was_open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take().is_some();
        if was_open {
            self.desk.went(reason);
        }
        self.lost.notify_one();
    }

    /// Connects, and sees whether it takes something in time. That it answers is not enough: a replica in the middle of a
    /// failover does, and so does a server whose memory is full.
    async fn try_again(&self) -> Result<Connection, String> {
        let connection = self.server.connect(LATEST).await.map_err(|error| error.to_string())?;
        for _ in 0..2 {
            // The first answer includes the way there; only the second tells how fast it is.
            let mut writing = redis::cmd("SET");
            writing.arg(TRIED).arg(1).arg("PX").arg(60_000);
            let mut way = connection.clone();
            let mut written = Box::pin(async move { writing.query_async::<()>(&mut way).await });
            match within(self.limit, written.as_mut()).await {
                Some(Ok(())) => {
                    // The first burst of requests would load them once each otherwise, and be late for it.
                    let mut way = connection.clone();
                    for script in [&ASK, &AFTER] {
                        script
                            .prepare_invoke()
                            .load_async(&mut way)
                            .await
                            .map_err(|error| error.to_string())?;
                    }
                    return Ok(connection);
                }
                Some(Err(error)) => return Err(error.to_string()),
                None => written.await.map_err(|error| error.to_string())?,
            }
        }
        Err(format!("no answer within {:?}", self.limit))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.lost.notify_one();
    }
}

/// Keeps a link connected for as long as somebody uses it.
async fn maintain(link: std::sync::Weak<Link>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(link) = link.upgrade() else { return };
        match tokio::time::timeout(Duration::from_secs(3), link.try_again()).await {
            Ok(Ok(connection)) => {
                *link.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
                link.desk.came_back();
                link.tried.send_replace(true);
                pause = FIRST_PAUSE;
                let lost = Arc::clone(&link.lost);
                drop(link);
                lost.notified().await;
            }
            Ok(Err(reason)) => {
                link.desk.is_away(&reason);
                link.tried.send_replace(true);
                drop(link);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(_) => {
                link.desk.is_away("no connection within 3 s");
                link.tried.send_replace(true);
            }
        }
    }
}

/// What is written to see whether something can be.
const TRIED: &str = "{lb}:tried";
/// What comes later than this is not heard any more. Nobody waits for it, but what it has counted must be taken back.
const LATEST: Duration = Duration::from_secs(30);
/// How long an answer may be on its way here after its client has got it, before it counts as one that nobody knows.
const ON_ITS_WAY: [Duration; 3] =
    [Duration::from_millis(2), Duration::from_millis(5), Duration::from_millis(13)];
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What takes back everything that an answer counted which came too late.
fn undone(ask: &Ask, told: &Told) -> Aftermath {
    use crate::after::{AttemptOver, ChargeOver, SharedKey, Unit};
    let nameless = || format!("lb-{:016x}", (told.account >> 64) as u64);
    let account = told.name.clone().unwrap_or_else(nameless);
    let session = |by_session: bool| by_session.then_some(&*account);
    let attempts = ask.attempts.iter().map(|attempt| AttemptOver {
        window: SharedKey::new(attempt.key, session(attempt.by_session)),
        id: attempt.id,
        // This process counts it by itself, and adds it when Redis is back.
        taken_back: true,
    });
    let charges = ask.charges.iter().filter(|_| told.is_reserved).map(|charge| ChargeOver {
        counter: SharedKey::new(charge.key, session(charge.by_session)),
        window_millis: charge.window_millis,
        estimate: charge.estimate,
        actual: 0,
        at: told.at,
        used: std::time::Instant::now(),
        // Nothing of it is used, so nothing can be too much.
        unit: Unit::Requests,
        limit: None,
    });
    Aftermath {
        tenant: ask.tenant,
        attempts: attempts.collect(),
        charges: charges.collect(),
        ..Aftermath::default()
    }
}
