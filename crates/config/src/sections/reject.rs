//! `reject`: how a refusal is answered.

use crate::cursor::{Cursor, Read};
use crate::kinds::whole;

/// How a refusal is answered.
///
/// ```
/// assert_eq!(loopbreaker_config::Reject::default().status, 429);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reject {
    /// The status: 429, or 400 or 403 for clients that retry every 429.
    pub status: u16,
}

impl Default for Reject {
    fn default() -> Self {
        Self { status: 429 }
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<Reject> {
    let mut fields = section.map()?;
    let status = fields.field("status", Reject::default().status, |value| match whole(value)? {
        400 => Ok(400),
        403 => Ok(403),
        429 => Ok(429),
        other => {
            Err(value.refuse(format!("the status {other} is not possible here"), "write 400, 403 or 429"))
        }
    });
    fields.finish();
    Ok(Reject { status: status? })
}
