//! `pause`: how long a call waits for an operator.

use std::time::Duration;

use crate::cursor::{Cursor, Read};
use crate::kinds::{duration, some_time};

/// How long a paused call waits for an operator.
///
/// ```
/// use loopbreaker_config::Pause;
/// assert_eq!((Pause::default().hold.as_secs(), Pause::default().timeout.as_secs()), (25, 1_800));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// How long one request is held before its client is told to ask again.
    pub hold: Duration,
    /// How long the session stays paused; then it is rejected, never approved.
    pub timeout: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self { hold: Duration::from_secs(25), timeout: Duration::from_secs(1_800) }
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<Pause> {
    let default = Pause::default();
    let mut fields = section.map()?;
    let hold = fields.field("hold", default.hold, duration);
    let timeout = fields.field("timeout", default.timeout, some_time);
    let pause = match (hold, timeout) {
        (Ok(hold), Ok(timeout)) if hold > timeout => {
            let key = if fields.has("hold") { "hold" } else { "timeout" };
            Err(fields.about(key, |at| {
                at.refuse(
                    "`hold` is longer than `timeout`",
                    "hold one request no longer than the whole pause",
                )
            }))
        }
        (hold, timeout) => hold.and_then(|hold| Ok(Pause { hold, timeout: timeout? })),
    };
    fields.finish();
    pause
}
