//! Traffic on its way into the decision log: handed over on the request's path, written down beside it.
//!
//! A request hands over what its transcript shows that was not known before, what was thought of it, and what was
//! answered. One thread, the clerk, turns that into logs. The queue between them is bounded: what finds no room is
//! counted, and no model call waits for it.

mod clerk;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use loopbreaker::{Action, Outcome, Role, Status, Step};
use loopbreaker_dialect::{Answer, Dialect};
use loopbreaker_observatory::{Observatory, after_you, hurry};
use loopbreaker_record::TraceId;
use loopbreaker_telemetry::mask;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::sessions::SessionKey;
use clerk::Clerk;

/// Takes in what happens.
#[derive(Debug)]
pub(crate) struct Journal {
    queue: SyncSender<Entry>,
    /// How many entries are in it, or nearly so.
    waiting: Arc<AtomicUsize>,
    clerk: Thread,
    dropped: AtomicU64,
}

/// Whose request it is that something is told of.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) tenant: Arc<str>,
    pub(crate) session: Arc<str>,
    pub(crate) key: SessionKey,
    /// How the conversation began that it belongs to; a session may have several.
    pub(crate) anchor: u128,
    pub(crate) agent: Arc<str>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) dialect: Option<Dialect>,
    /// Its history is kept by the provider and does not stand in it.
    pub(crate) history_elsewhere: bool,
    pub(crate) at: SystemTime,
}

/// Something that happened to a request.
#[derive(Debug)]
pub(crate) enum Entry {
    /// Its transcript shows steps that were not known before.
    Heard(Who, Vec<Heard>),
    /// Something was thought of it.
    Judged(Who, Judged),
    /// It was answered.
    Answered(Who, Box<Answered>),
    /// It was refused.
    Refused(Who, Refused),
    /// It was let go, and its provider gave no answer.
    Failed(Who, Refused),
    /// Its session is paused by the verdict on it.
    Paused(Who, Arc<str>, String),
    /// Everything before this is written down by the time that this is answered.
    CatchUp(oneshot::Sender<()>),
}

/// A step of a transcript, in words of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Its place in the transcript.
    pub(crate) position: usize,
    pub(crate) round: Option<u64>,
    pub(crate) from_outside: bool,
    pub(crate) thought: Option<Box<str>>,
    pub(crate) tool: Option<Box<str>>,
    pub(crate) args: Option<Box<str>>,
    pub(crate) result: Option<Box<str>>,
    pub(crate) status: Option<Status>,
    /// Whether the result says that the call failed; all of it was read, and not only what is kept here.
    pub(crate) failed: bool,
}

/// What was thought of a request.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Whether its session was in a loop at any time.
    pub(crate) has_looped: bool,
    pub(crate) findings: Vec<Value>,
    /// `None` for what was found in an answer, when the verdict was long told.
    pub(crate) verdict: Option<Thought>,
}

/// A verdict, or what it would have been.
#[derive(Debug)]
pub(crate) struct Thought {
    pub(crate) action: Action,
    pub(crate) enforced: bool,
    pub(crate) policy: Option<Arc<str>>,
    pub(crate) kind: Option<&'static str>,
    pub(crate) message: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The place in the transcript of the first step that the answer adds.
    pub(crate) position: usize,
    pub(crate) answer: Answer,
    pub(crate) tokens: u64,
    pub(crate) cost_micros: u64,
    /// Whether it is an answer of before, given again.
    pub(crate) is_given_again: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) position: usize,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Journal {
    /// Entries that may wait: twice as many as are taken at a time. Each holds at most a few texts of
    /// [`Heard::MAX_TEXT`] bytes.
    const MAX_WAITING: usize = 16_384;

    /// Starts the clerk.
    pub(crate) fn open(observatory: Arc<Observatory>) -> io::Result<Self> {
        let (queue, entries) = mpsc::sync_channel(Self::MAX_WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&waiting);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let clerk = thread.spawn(move || {
            let mut clerk = Clerk::new(observatory);
            while let Some(page) = Self::next_page(&entries, &told) {
                hurry(page.len() == Self::MAX_ON_A_PAGE);
                for entry in page {
                    clerk.write(entry);
                    after_you();
                }
                clerk.hand_over();
            }
        })?;
        Ok(Self { queue, waiting, clerk: clerk.thread().clone(), dropped: AtomicU64::new(0) })
    }

    /// Entries are written down together where they come one by one: each page costs the store one commit. Nobody waits
    /// for them, and whoever asks for them has them written down at once.
    const PAGE: Duration = Duration::from_millis(200);
    const MAX_ON_A_PAGE: usize = 8_192;
    /// So many are a page before its time: some two thousand requests. A session that sends several of them is written
    /// once.
    const A_PAGE: usize = 6_144;

    /// What is written down next; `None` when nothing will come any more.
    fn next_page(entries: &mpsc::Receiver<Entry>, waiting: &AtomicUsize) -> Option<Vec<Entry>> {
        let mut page = vec![entries.recv().ok()?];
        page.extend(entries.try_iter().take(Self::MAX_ON_A_PAGE - 1));
        if page.len() < Self::A_PAGE && !page.iter().any(Entry::is_urgent) {
            // It is woken up once for a page, and not for each entry: that would cost those who hand them over.
            std::thread::park_timeout(Self::PAGE);
            page.extend(entries.try_iter().take(Self::MAX_ON_A_PAGE - page.len()));
        }
        waiting.fetch_sub(page.len(), Ordering::Relaxed);
        Some(page)
    }

    /// Hands something over, without waiting.
    pub(crate) fn tell(&self, entry: Entry) {
        let is_urgent = entry.is_urgent();
        // It is counted first, so that nobody takes more away than was counted.
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(entry) {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if is_urgent || waiting == Self::A_PAGE {
            self.clerk.unpark();
        }
    }

    /// How much found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything that was handed over is written down, for at most `limit`.
    pub(crate) fn flush(&self, limit: Duration) {
        let (done, mut is_done) = oneshot::channel();
        let deadline = Instant::now() + limit;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.send(Entry::CatchUp(done)).is_err() {
            return;
        }
        self.clerk.unpark();
        // Too late is too late: the process ends all the same.
        while matches!(is_done.try_recv(), Err(TryRecvError::Empty)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Entry {
    /// Whether somebody waits for it.
    const fn is_urgent(&self) -> bool {
        matches!(self, Self::Paused(..) | Self::CatchUp(_))
    }

    fn who_mut(&mut self) -> Option<&mut Who> {
        match self {
            Self::Heard(who, _)
            | Self::Judged(who, _)
            | Self::Answered(who, _)
            | Self::Refused(who, _)
            | Self::Failed(who, _)
            | Self::Paused(who, ..) => Some(who),
            Self::CatchUp(_) => None,
        }
    }
}

impl Who {
    /// Masks what looks like a credential.
    fn hide_credentials(&mut self) {
        for name in [&mut self.tenant, &mut self.session, &mut self.agent] {
            if let Cow::Owned(masked) = mask(name) {
                *name = masked.into();
            }
        }
        if let Some(model) = &mut self.model
            && let Cow::Owned(masked) = mask(model)
        {
            *model = masked.into();
        }
    }
}

impl Heard {
    /// More of one text is not kept.
    const MAX_TEXT: usize = 16 << 10;
    /// More steps of one request are not kept; the oldest of a long transcript are left out.
    pub(crate) const MAX_STEPS: usize = 256;

    /// A step in words of its own, whose result was read already.
    pub(crate) fn of(position: usize, step: &Step<'_>, outcome: &Outcome) -> Self {
        let kept = |text: Option<&str>| text.map(|text| start_of(text, Self::MAX_TEXT).into());
        Self {
            position,
            round: step.round,
            from_outside: !matches!(step.role, Role::Agent(_)),
            thought: kept(step.thought),
            tool: step.tool.map(|tool| tool_name(tool).into()),
            args: step.args.map(input),
            result: kept(step.result),
            status: step.status,
            failed: outcome.failed(),
        }
    }
}

/// The name of the log about one step: the same however often its transcript is read.
///
/// A call says by itself what it is. Words do not: answers to different questions may stand at one place of a session,
/// and how their conversations began tells them apart.
pub(crate) fn trace_id(
    session: SessionKey,
    anchor: u128,
    position: usize,
    tool: Option<&str>,
    args: Option<&str>,
) -> TraceId {
    let call = tool.map(|tool| loopbreaker::Fingerprint::of_call(tool, args));
    let anchor = anchor.to_le_bytes();
    let what = call.as_ref().map_or(&anchor[..], |call| call.as_bytes());
    TraceId::derived(&[&session.0.to_le_bytes(), &position.to_le_bytes(), what])
}

/// A tool's name, as it is kept.
pub(crate) fn tool_name(tool: &str) -> &str {
    start_of(tool, 256)
}

/// Arguments as JSON text. What is too long, or no JSON at all, is kept as a JSON string.
pub(crate) fn input(args: &str) -> Box<str> {
    if args.len() <= Heard::MAX_TEXT && serde_json::from_str::<&serde_json::value::RawValue>(args).is_ok() {
        return args.into();
    }
    Value::from(start_of(args, Heard::MAX_TEXT)).to_string().into()
}

/// As much of a text as fits into so many bytes.
fn start_of(text: &str, bytes: usize) -> &str {
    let end = (0..=text.len().min(bytes)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
