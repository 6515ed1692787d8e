//! What is written when a request is over, or when its verdict is known. Nobody waits for it.

use std::time::Instant;

use redis::{Cmd, Pipeline, RedisError, ScriptInvocation};

use crate::ask::{MAX_EXACT, bytes};
use crate::scripts::{AFTER, about, prefix};
use crate::server::Connection;

/// What a request leaves behind.
#[derive(Debug, Clone, Default)]
pub struct Aftermath {
    /// Names it, so that it counts once however often it is written; 0 until somebody tries.
    pub number: u64,
    /// Hash of the tenant's name.
    pub tenant: u64,
    /// Attempts that are on their way no more.
    pub attempts: Vec<AttemptOver>,
    /// Attempts that were made while nobody could be asked.
    pub missed: Vec<AttemptMissed>,
    /// What was reserved, and what was really used.
    pub charges: Vec<ChargeOver>,
    /// A transcript that was refused.
    pub refused: Option<Refused>,
    /// Loops of a session, where they were not known when it was asked about.
    pub strikes: Option<Struck>,
    /// An answer that the next request will name.
    pub answered: Option<AnswerNamed>,
}

/// An answer, or a conversation, that the next request will name instead of repeating what led to it.
#[derive(Debug, Clone)]
pub struct AnswerNamed {
    /// The session.
    pub session: u128,
    /// The answer or conversation.
    pub thread: u128,
    /// What led to it; empty where that is too long to be shared.
    pub window: Vec<u8>,
}

/// An attempt that is over.
#[derive(Debug, Clone)]
pub struct AttemptOver {
    /// The window that it was counted in.
    pub window: SharedKey,
    /// Names the attempt.
    pub id: u64,
    /// Whether it never counted: the provider failed.
    pub taken_back: bool,
}

impl AttemptOver {
    /// Takes it out of the set of this kind: `f:` of those on their way, `w:` of those that count.
    fn leaves(&self, prefix: &str, kind: &str) -> Cmd {
        let key = [prefix.as_bytes(), kind.as_bytes(), &self.window.0].concat();
        let mut command = redis::cmd("ZREM");
        command.arg(key).arg(self.id);
        command
    }
}

/// An attempt that this process counted by itself.
#[derive(Debug, Clone)]
pub struct AttemptMissed {
    /// The window that it belongs to.
    pub window: SharedKey,
    /// Length of that window.
    pub window_millis: u64,
    /// Names the attempt.
    pub id: u64,
    /// When it was made.
    pub made: Instant,
}

impl AttemptMissed {
    /// Whether it counts no more.
    pub(crate) fn is_past(&self) -> bool {
        millis(self.made.elapsed()) >= self.window_millis
    }
}

/// Loops of a session that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struck {
    /// The session.
    pub session: u128,
    /// The session whose budget holds for it.
    pub account: u128,
    /// Where its transcript ends.
    pub tip: u128,
    /// The loops and their strikes.
    pub loops: Vec<(u128, u32)>,
}

/// A transcript that is refused as long as it stays as it is.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// Its session.
    pub session: u128,
    /// The session whose budget holds for it.
    pub account: u128,
    /// Where it ends.
    pub tip: u128,
    /// How long that holds.
    pub until: Instant,
}

impl ChargeOver {
    /// Whether it counts no more.
    pub(crate) fn is_past(&self) -> bool {
        self.at == 0 && self.window_millis.is_some_and(|window| millis(self.used.elapsed()) >= window)
    }
}

impl Refused {
    fn left(&self) -> u64 {
        millis(self.until.saturating_duration_since(Instant::now()))
    }

    /// Whether it holds no more.
    pub(crate) fn is_past(&self) -> bool {
        self.left() == 0
    }
}

fn millis(time: std::time::Duration) -> u64 {
    time.as_millis() as u64
}

/// A charge that is over.
#[derive(Debug, Clone)]
pub struct ChargeOver {
    /// The count.
    pub counter: SharedKey,
    /// Length of its window; `None`: as long as the session.
    pub window_millis: Option<u64>,
    /// What was reserved.
    pub estimate: u64,
    /// What was used.
    pub actual: u64,
    /// When it was reserved, by Redis's time; 0 where nobody could be asked.
    pub at: u64,
    /// When it was used, which matters where nobody could be asked.
    pub used: Instant,
    /// What is counted.
    pub unit: Unit,
    /// The limit, where nothing may go beyond it.
    pub limit: Option<u64>,
}

/// What a budget is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Requests.
    Requests,
    /// Tokens.
    Tokens,
    /// Millionths of a dollar.
    MicroDollars,
}

/// More than a budget allows, spent while nobody could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overspent {
    /// What was spent.
    pub unit: Unit,
    /// How much was too much.
    pub amount: u64,
}

/// A key as the scripts make it: a hash, and the session's name where each session counts for itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SharedKey(Vec<u8>);

impl SharedKey {
    /// The key of a hash, for all sessions or for one.
    pub fn new(hash: u128, session: Option<&str>) -> Self {
        let mut key = bytes(hash).to_vec();
        key.extend_from_slice(session.unwrap_or_default().as_bytes());
        Self(key)
    }
}

impl Aftermath {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.attempts.is_empty() && self.is_settled()
    }

    /// Writes it to Redis; says what turned out to be too much.
    pub(crate) async fn write(&self, connection: &mut Connection) -> Result<Vec<Overspent>, RedisError> {
        if let Some(ending) = self.ending(&prefix(self.tenant)) {
            ending.query_async::<()>(connection).await?;
        }
        if self.is_settled() {
            return Ok(Vec::new());
        }
        let mut call = about(&AFTER, self.tenant);
        self.write_rest(&mut call);
        let excesses: Vec<u64> = call.invoke_async(connection).await?;
        let overspent = self.charges.iter().zip(excesses).filter(|(_, amount)| *amount > 0);
        Ok(overspent.map(|(charge, amount)| Overspent { unit: charge.unit, amount }).collect())
    }

    /// Whether there is nothing to write but that attempts are over.
    fn is_settled(&self) -> bool {
        self.missed.is_empty()
            && self.charges.is_empty()
            && self.refused.is_none()
            && self.strikes.is_none()
            && self.answered.is_none()
    }

    /// What ends its attempts. Nearly every request leaves one behind and nothing else, and these commands cost Redis a
    /// fraction of what a script does.
    fn ending(&self, prefix: &str) -> Option<Pipeline> {
        if self.attempts.is_empty() {
            return None;
        }
        let mut pipeline = redis::pipe();
        for attempt in &self.attempts {
            pipeline.add_command(attempt.leaves(prefix, "f:"));
            if attempt.taken_back {
                pipeline.add_command(attempt.leaves(prefix, "w:"));
            }
        }
        Some(pipeline)
    }

    /// Writes all but the attempts that are over down as arguments of the script.
    fn write_rest(&self, call: &mut ScriptInvocation<'_>) {
        call.arg(self.number);
        call.arg(self.missed.len());
        for attempt in &self.missed {
            call.arg(&attempt.window.0).arg(attempt.window_millis);
            call.arg(attempt.id).arg(millis(attempt.made.elapsed()));
        }
        call.arg(self.charges.len());
        for charge in &self.charges {
            call.arg(&charge.counter.0).arg(charge.window_millis.unwrap_or(0));
            call.arg(charge.estimate.min(MAX_EXACT)).arg(charge.actual.min(MAX_EXACT)).arg(charge.at);
            let is_owed = charge.at == 0;
            match charge.limit.filter(|_| is_owed) {
                Some(limit) => call.arg(limit),
                None => call.arg(""),
            };
            call.arg(if is_owed { millis(charge.used.elapsed()) } else { 0 });
        }
        match &self.refused {
            Some(refused) => call
                .arg(&bytes(refused.session))
                .arg(&bytes(refused.account))
                .arg(&bytes(refused.tip))
                .arg(refused.left()),
            None => call.arg(""),
        };
        match &self.strikes {
            Some(Struck { session, account, tip, loops }) => {
                call.arg(&bytes(*session)).arg(&bytes(*account)).arg(&bytes(*tip)).arg(loops.len());
                for (identity, shown) in loops {
                    call.arg(&bytes(*identity)).arg(*shown);
                }
            }
            None => drop(call.arg("")),
        }
        match &self.answered {
            Some(AnswerNamed { session, thread, window }) => {
                call.arg(&bytes(*session)).arg(&bytes(*thread)).arg(window)
            }
            None => call.arg(""),
        };
    }
}
