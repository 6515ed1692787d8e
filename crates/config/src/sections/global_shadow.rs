//! `global_shadow`: every policy only observes, perhaps until a moment.

use loopbreaker::Timestamp;

use crate::cursor::{Cursor, Read};
use crate::kinds::{flag, moment, text};

/// Whether every policy only observes, whatever its own mode says.
///
/// ```
/// use loopbreaker::Timestamp;
/// use loopbreaker_config::Config;
/// let shadow = Config::parse("global_shadow: true").unwrap().global_shadow;
/// assert!(shadow.is_on(Timestamp::from_secs(0)));
/// let text = r#"{ "global_shadow": { "enabled": true, "reason": "roll-out", "expires_at": "1970-01-01T00:01:00Z" } }"#;
/// let shadow = Config::parse(text).unwrap().global_shadow;
/// assert!(shadow.is_on(Timestamp::from_secs(59)) && !shadow.is_on(Timestamp::from_secs(60)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GlobalShadow {
    /// Whether it was switched on.
    pub enabled: bool,
    /// Why.
    pub reason: Option<String>,
    /// When it ends by itself, in milliseconds since 1970.
    pub expires_at: Option<Timestamp>,
}

impl GlobalShadow {
    /// Whether it holds at this moment of the wall clock.
    pub fn is_on(&self, now: Timestamp) -> bool {
        self.enabled && self.expires_at.is_none_or(|end| now < end)
    }
}

/// `true` or `false`, or the map of a policy bundle.
pub(super) fn read(value: Cursor<'_>) -> Read<GlobalShadow> {
    if !value.is_map() {
        return flag(value).map(|enabled| GlobalShadow { enabled, ..GlobalShadow::default() });
    }
    let mut fields = value.map()?;
    let enabled = fields.required("enabled", "write `enabled: true` or `enabled: false`", flag);
    let reason = fields.optional("reason", text);
    let expires_at = fields.optional("expires_at", moment);
    fields.finish();
    Ok(GlobalShadow { enabled: enabled?, reason: reason?, expires_at: expires_at? })
}
