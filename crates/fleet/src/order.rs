//! Decisions about sessions, and how all processes hear of them.

use redis::ScriptInvocation;

use crate::ask::bytes;

/// The stream of orders.
pub(crate) const ORDERS: &str = "{lb}:orders";

/// What is decided about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Its calls are held.
    Pause {
        /// Forgotten after so many milliseconds.
        millis: u64,
        /// The transcript that is held up by it already, where there is one.
        held: Option<u128>,
        /// How many milliseconds ago that was: somebody may have decided since.
        ago: u64,
    },
    /// They go on.
    Resume,
    /// They are refused with these words.
    Reject(String),
    /// A held call was told of the rejection, so the next one is not.
    Told,
    /// Nothing about its calls: the message is all.
    Say,
}

/// A decision about one session, and what the other processes are told of it.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) tenant: u64,
    pub(crate) session: String,
    pub(crate) decision: Decision,
    pub(crate) message: Option<String>,
}

impl Decided {
    /// Writes it down as arguments of the script.
    pub(crate) fn write(&self, call: &mut ScriptInvocation<'_>) {
        let what = match &self.decision {
            Decision::Pause { .. } => "pause",
            Decision::Resume => "resume",
            Decision::Reject(_) => "reject",
            Decision::Told => "told",
            Decision::Say => "say",
        };
        call.arg(what).arg(&self.session);
        match &self.decision {
            Decision::Pause { millis, held, ago } => {
                call.arg(*millis).arg(*ago);
                match held {
                    Some(tip) => call.arg(&bytes(*tip)),
                    None => call.arg(""),
                };
            }
            Decision::Reject(words) => drop(call.arg(words)),
            Decision::Resume | Decision::Told | Decision::Say => {}
        }
    }
}

/// What another process said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// An order. `is_old` when it was given before this process began.
    Order {
        /// Its place among everything that was said: when in milliseconds, and a number.
        place: (u64, u64),
        /// The message that came with it.
        message: String,
        /// Whether it was given before this process began to listen.
        is_old: bool,
    },
    /// A setting that another process has changed, or this one before it ended.
    Setting {
        /// Which it is.
        name: String,
        /// What it is now.
        value: String,
    },
    /// The secret that everybody's ids are keyed with is another than this process began with.
    Secret([u8; 32]),
}
