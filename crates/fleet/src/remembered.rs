//! What a process remembers of a session that has looped, for a Redis that has lost it.

use redis::ScriptInvocation;

use crate::ask::bytes;

/// What whoever asks remembers of the session. It counts where Redis knows of no refusal, or of the same one: after
/// another one the session was judged afresh, and what was before is over.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    /// The transcript that was refused last.
    pub refused: Option<RefusedBefore>,
    /// The strikes of its loops since then.
    pub strikes: Vec<(u128, u32)>,
}

/// A refusal of before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedBefore {
    /// Where the transcript ends that was refused.
    pub tip: u128,
    /// For how many milliseconds more it is.
    pub left_millis: u64,
    /// The chance that it gets when that time is over.
    pub chance: Chance,
}

/// How far a refused transcript is with its last chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chance {
    /// It was not let through yet.
    Kept,
    /// It was, and nothing came after it.
    Newest,
    /// It was, and the session went on.
    Past,
}

impl Remembered {
    /// Writes it down as arguments of the script.
    pub(crate) fn write(&self, call: &mut ScriptInvocation<'_>) {
        match &self.refused {
            Some(RefusedBefore { tip, left_millis, chance }) => {
                let chance = match chance {
                    Chance::Kept => 0,
                    Chance::Newest => 1,
                    Chance::Past => 2,
                };
                call.arg(&bytes(*tip)).arg(*left_millis).arg(chance);
            }
            None => drop(call.arg("")),
        }
        call.arg(self.strikes.len());
        for (identity, strikes) in &self.strikes {
            call.arg(&bytes(*identity)).arg(*strikes);
        }
    }
}
