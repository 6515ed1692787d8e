//! The one question that a request asks before it goes out, and its answer.

use redis::{FromRedisValue, ParsingError, ScriptInvocation, Value};

use crate::remembered::Remembered;

/// What a request must know of what others did.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Hash of the tenant's name: every key of it carries this tag.
    pub tenant: u64,
    /// How its session is found.
    pub place: Place,
    /// Where its transcript ends.
    pub tip: u128,
    /// The answer or conversation that it goes on from, where what led there is not known to this process: the loops
    /// that it shows are known only with the answer.
    pub thread: Option<u128>,
    /// Whether that is an answer, which must have been given somewhere: what is left of it may still be on its way here.
    pub awaits_answer: bool,
    /// Whether its transcript shows a loop, so that an earlier refusal matters.
    pub is_loop: bool,
    /// Loops that it shows, with the strikes that the transcript itself shows.
    pub strikes: Vec<(u128, u32)>,
    /// What this process remembers of its session, where an earlier refusal matters.
    pub remembered: Remembered,
    /// Windows in which it counts as an attempt.
    pub attempts: Vec<AttemptAsk>,
    /// What it will probably use.
    pub charges: Vec<ChargeAsk>,
}

/// How the session of a request is found.
#[derive(Debug, Clone)]
pub enum Place {
    /// The client names it.
    Named {
        /// Its key.
        key: u128,
        /// Its name, as operators know it.
        name: String,
    },
    /// Its transcript tells.
    Transcript {
        /// The transcript's first link: the key of a session that nobody knows yet.
        anchor: u128,
        /// Links after its messages, newest first.
        links: Vec<u128>,
        /// Hashes of messages that follow each other, newest first, by which a compacted transcript is recognised.
        tails: Vec<u128>,
        /// Session and account as this process knows them: it may have seen what Redis has not.
        known: Option<KnownPlace>,
    },
}

/// Where a process would put a transcript by itself.
#[derive(Debug, Clone)]
pub struct KnownPlace {
    /// The session.
    pub key: u128,
    /// The session whose budget and pause hold for it.
    pub account: u128,
    /// What clients call that account, where they have a name for it.
    pub name: Option<String>,
}

/// One window of `identical_request`.
#[derive(Debug, Clone, Copy)]
pub struct AttemptAsk {
    /// Fingerprint of the request, the session aside.
    pub key: u128,
    /// Whether each session counts for itself.
    pub by_session: bool,
    /// Length of the window.
    pub window_millis: u64,
    /// Names this attempt.
    pub id: u64,
    /// Whether one that comes while an equal one is on its way is not counted.
    pub once_in_flight: bool,
    /// So many are remembered, the newest ones.
    pub most: u32,
}

/// One charge against a budget.
#[derive(Debug, Clone)]
pub struct ChargeAsk {
    /// Hash of rule and limit keys, the session aside.
    pub key: u128,
    /// Whether each session counts for itself.
    pub by_session: bool,
    /// Length of the window; `None`: as long as the session.
    pub window_millis: Option<u64>,
    /// The limit.
    pub amount: u64,
    /// Whether nothing may go beyond it.
    pub stops: bool,
    /// What this request will probably use.
    pub estimate: u64,
    /// Amounts at which a warning is due, ascending.
    pub stages: Vec<u64>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are answers to as many questions, none of which depends on another"
)]
pub struct Told {
    /// The session.
    pub key: u128,
    /// The session whose budget and pause hold for it.
    pub account: u128,
    /// What clients call that account, where they have a name for it.
    pub name: Option<String>,
    /// Whether nobody has seen it before.
    pub is_new: bool,
    /// Whether this transcript is the first that was seen of it.
    pub is_first: bool,
    /// What an earlier refusal means for this transcript.
    pub after: After,
    /// The strikes of each loop that was asked about.
    pub strikes: Vec<u32>,
    /// What is known of its pause, if anything is.
    pub pause: Option<Paused>,
    /// Whether an operator has let this transcript go on.
    pub is_approved: bool,
    /// How often it was sent, in each window.
    pub attempts: Vec<Sightings>,
    /// Whether everything was reserved.
    pub is_reserved: bool,
    /// How each budget stood before this request.
    pub standings: Vec<Stood>,
    /// Redis's own time, in milliseconds.
    pub at: u64,
    /// What led to the answer or conversation that was asked about, where somebody has left it.
    pub window: Option<Vec<u8>>,
    /// Every strike of the session, where a thread was asked about.
    pub kept: Vec<(u128, u32)>,
}

/// What an unchanged transcript gets after it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It was not refused, or has changed since.
    Judge,
    /// It is refused for so many milliseconds more.
    Refuse(u64),
    /// It is let through this once.
    LetThrough,
}

/// A session that goes no further for now, or did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// Whether it is the session itself that was paused, and not the one on whose account it runs.
    pub is_own: bool,
    /// What is known of it.
    pub state: PauseState,
}

/// How far a pause is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseState {
    /// Nobody has decided yet, for so many milliseconds.
    Waiting(u64),
    /// It was rejected when none of its calls waited, with these words.
    Rejected(String),
    /// It was decided about so many milliseconds ago: who was paused before goes on.
    Ended(u64),
}

/// How often a request was sent within a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sightings {
    /// Once at least.
    pub times: u32,
    /// Whether this attempt is one of them; else one that is on its way counts for both.
    pub counts: bool,
}

impl Sightings {
    /// Of a number that is negative where the attempt does not count.
    fn told(times: i64) -> Self {
        Self { times: u32::try_from(times.unsigned_abs()).unwrap_or(u32::MAX), counts: times > 0 }
    }
}

/// How a budget stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stood {
    /// What was used before this request.
    pub used: u64,
    /// Milliseconds until it fits.
    pub reset_millis: u64,
    /// The stage that this request is the first to reach; 0: none.
    pub stage: u8,
}

/// Largest number that Redis's scripts count exactly.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

impl Ask {
    /// Writes the question down as arguments of the script. One that `waits` is not answered, and changes nothing, while
    /// the answer that it goes on from is not known.
    pub(crate) fn write(&self, call: &mut ScriptInvocation<'_>, waits: bool) {
        match self.thread.filter(|_| waits) {
            Some(answer) => call.arg(&bytes(answer)),
            None => call.arg(""),
        };
        match &self.place {
            Place::Named { key, name } => {
                call.arg(name.as_bytes()).arg(&bytes(self.tip)).arg(&bytes(*key));
                // Neither links nor tails, and neither session nor account nor its name are known.
                for _ in 0..5 {
                    call.arg("");
                }
            }
            Place::Transcript { anchor, links, tails, known } => {
                call.arg("").arg(&bytes(self.tip)).arg(&bytes(*anchor));
                for list in [links, tails] {
                    let side_by_side: Vec<u8> = list.iter().flat_map(|link| bytes(*link)).collect();
                    call.arg(side_by_side);
                }
                match known {
                    Some(KnownPlace { key, account, name }) => {
                        call.arg(&bytes(*key)).arg(&bytes(*account)).arg(name.as_deref().unwrap_or_default())
                    }
                    None => call.arg("").arg("").arg(""),
                };
            }
        }
        match self.thread {
            // It may turn out to be a loop.
            Some(thread) => call.arg(2).arg(&bytes(thread)),
            None => call.arg(u8::from(self.is_loop)),
        };
        if self.thread.is_some() || self.is_loop {
            self.remembered.write(call);
        }
        call.arg(self.strikes.len());
        for (identity, shown) in &self.strikes {
            call.arg(&bytes(*identity)).arg(*shown);
        }
        call.arg(self.attempts.len());
        for attempt in &self.attempts {
            call.arg(&bytes(attempt.key)).arg(u8::from(attempt.by_session)).arg(attempt.window_millis);
            call.arg(attempt.id).arg(u8::from(attempt.once_in_flight)).arg(attempt.most);
        }
        call.arg(self.charges.len());
        for charge in &self.charges {
            call.arg(&bytes(charge.key))
                .arg(u8::from(charge.by_session))
                .arg(charge.window_millis.unwrap_or(0));
            call.arg(charge.amount.min(MAX_EXACT))
                .arg(u8::from(charge.stops))
                .arg(charge.estimate.min(MAX_EXACT));
            call.arg(charge.stages.len());
            for stage in &charge.stages {
                call.arg(*stage);
            }
        }
    }
}

/// An answer, or none yet.
pub(crate) struct Reply(pub(crate) Option<Told>);

impl FromRedisValue for Reply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        match value {
            Value::Array(fields) if fields.is_empty() => Ok(Self(None)),
            told => Told::from_redis_value(told).map(Some).map(Self),
        }
    }
}

impl FromRedisValue for Told {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        type Fields = (
            (Vec<u8>, Vec<u8>, bool, bool),
            (u8, u64, Vec<u32>),
            (Vec<u8>, bool, Vec<i64>),
            (bool, Vec<(u64, u64, u8)>, u64, String),
        );
        type ThreadFields = (Option<Vec<u8>>, Vec<(Vec<u8>, u32)>);
        let Value::Array(mut fields) = value else { return Err("the answer is no list".into()) };
        // What was asked about a thread comes last, where something was.
        let (window, kept): ThreadFields = match fields.len() {
            14 => (None, Vec::new()),
            16 => FromRedisValue::from_redis_value(Value::Array(fields.split_off(14)))?,
            _ => return Err("the answer has neither fourteen fields nor sixteen".into()),
        };
        let last = fields.split_off(10);
        let third = fields.split_off(7);
        let second = fields.split_off(4);
        let fields: Fields = (
            FromRedisValue::from_redis_value(Value::Array(fields))?,
            FromRedisValue::from_redis_value(Value::Array(second))?,
            FromRedisValue::from_redis_value(Value::Array(third))?,
            FromRedisValue::from_redis_value(Value::Array(last))?,
        );
        let ((key, account, is_new, is_first), (after, left, strikes), (pause, is_approved, attempts), last) =
            fields;
        let (is_reserved, standings, at, name) = last;
        Ok(Self {
            key: number(&key)?,
            account: number(&account)?,
            name: (!name.is_empty()).then_some(name),
            is_new,
            is_first,
            after: match after {
                1 => After::Refuse(left),
                2 => After::LetThrough,
                _ => After::Judge,
            },
            strikes,
            pause: paused(&pause),
            is_approved,
            attempts: attempts.into_iter().map(Sightings::told).collect(),
            is_reserved,
            standings: standings
                .into_iter()
                .map(|(used, reset_millis, stage)| Stood { used, reset_millis, stage })
                .collect(),
            at,
            window,
            kept: kept
                .iter()
                .map(|(identity, strikes)| Ok((number(identity)?, *strikes)))
                .collect::<Result<_, ParsingError>>()?,
        })
    }
}

fn paused(pause: &[u8]) -> Option<Paused> {
    let (state, rest) = pause.split_first()?;
    let rest = String::from_utf8_lossy(rest);
    Some(Paused {
        is_own: state.is_ascii_lowercase(),
        state: match state.to_ascii_uppercase() {
            b'R' => PauseState::Rejected(rest.into_owned()),
            b'E' => PauseState::Ended(rest.parse().unwrap_or(0)),
            _ => PauseState::Waiting(rest.parse().unwrap_or(0)),
        },
    })
}

/// A hash as it stands in a key.
pub(crate) fn bytes(hash: u128) -> [u8; 16] {
    hash.to_be_bytes()
}

fn number(bytes: &[u8]) -> Result<u128, ParsingError> {
    bytes.try_into().map(u128::from_be_bytes).map_err(|_| "a hash has not sixteen bytes".into())
}
