//! `throttle`: how many calls may wait at once.

use crate::cursor::{Cursor, Read};
use crate::kinds::whole;

/// How many calls may wait at once, throttled and paused ones together.
///
/// ```
/// assert_eq!(loopbreaker_config::Throttle::default().max_held, 1_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
    /// Calls that are held; the next one is answered at once.
    pub max_held: u32,
}

impl Default for Throttle {
    fn default() -> Self {
        Self { max_held: 1_000 }
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<Throttle> {
    let mut fields = section.map()?;
    let max_held = fields.field("max_held", Throttle::default().max_held, |value| {
        let max_held = whole(value)?;
        if max_held == 0 {
            value.notice(
                "no call is ever held, so throttle and pause refuse at once",
                "write 1000, as is usual",
            );
        }
        Ok(max_held)
    });
    fields.finish();
    Ok(Throttle { max_held: max_held? })
}
