//! `kill_switches`: whose every request is refused.

use loopbreaker::Timestamp;
use serde_json::{Map, Value};

use super::policies::limit_key::{self, LimitKey};
use crate::cursor::{Cursor, Read};
use crate::kinds::{filled, moment, text};

/// Whose every request is refused at once.
///
/// ```
/// use loopbreaker_config::{Config, LimitKey};
/// let text = "kill_switches: [{ tenant: acme, reason: runaway, expires_at: 2027-01-01T00:00:00Z }]";
/// let switch = &Config::parse(text).unwrap().kill_switches[0];
/// assert_eq!((&switch.key, &*switch.value), (&LimitKey::Tenant, "acme"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillSwitch {
    /// What of a request is looked at, most often the tenant.
    pub key: LimitKey,
    /// The value that is refused, compared exactly.
    pub value: String,
    /// The only path that is refused; `None` for every path.
    pub path: Option<String>,
    /// Why, for logs and answers.
    pub reason: Option<String>,
    /// When it ends by itself, in milliseconds since 1970.
    pub expires_at: Option<Timestamp>,
}

impl KillSwitch {
    /// Whether it holds at this moment of the wall clock.
    pub fn is_on(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// The switch as it would be written in a config: reading it gives the same switch again.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let text = "kill_switches: [{ scope_key: agent, scope_value: crawler, route: /v1/messages }]";
    /// let switch = Config::parse(text).unwrap().kill_switches.remove(0);
    /// let again = serde_json::json!({ "kill_switches": [switch.to_json()] }).to_string();
    /// assert_eq!(Config::parse(&again).unwrap().kill_switches, [switch]);
    /// ```
    pub fn to_json(&self) -> Value {
        let mut written = Map::new();
        let mut put = |name: &str, value: String| drop(written.insert(name.to_owned(), value.into()));
        if self.key == LimitKey::Tenant {
            put("tenant", self.value.clone());
        } else {
            put("scope_key", self.key.to_string());
            put("scope_value", self.value.clone());
        }
        for (name, text) in [("route", &self.path), ("reason", &self.reason)] {
            if let Some(text) = text {
                put(name, text.clone());
            }
        }
        if let Some(end) = self.expires_at {
            put("expires_at", crate::moment::write(end));
        }
        Value::Object(written)
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<Vec<KillSwitch>> {
    section.list(kill_switch)
}

/// Ours names a `tenant`; that of a policy bundle a `scope_key` with its `scope_value`, and perhaps a `route`.
fn kill_switch(value: Cursor<'_>) -> Read<KillSwitch> {
    let mut fields = value.map()?;
    let target = if fields.has("scope_key") || fields.has("scope_value") {
        let key = fields.required("scope_key", "write what is looked at, such as `tenant`", limit_key::read);
        let value = fields.required("scope_value", "write the value whose requests are refused", filled);
        key.and_then(|key| Ok((key, value?)))
    } else {
        let hint = "write whose requests are refused, such as `tenant: acme`";
        fields.required("tenant", hint, filled).map(|tenant| (LimitKey::Tenant, tenant))
    };
    let path = fields.optional("route", super::policies::selector::path);
    let reason = fields.optional("reason", text);
    let expires_at = fields.optional("expires_at", moment);
    fields.finish();
    let (key, value) = target?;
    Ok(KillSwitch { key, value, path: path?, reason: reason?, expires_at: expires_at? })
}
