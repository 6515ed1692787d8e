//! What requests are counted by.

use std::fmt;

use crate::cursor::{Cursor, Read};
use crate::header_name;
use crate::kinds::text;
use crate::path::quote;
use crate::suggest::suggest;

/// What of a request tells one counter from another.
///
/// ```
/// use loopbreaker_config::{Config, LimitKey};
/// let text = "policies: [{ id: a, spec: { limit_keys: [tenant, 'header:X-Team', 'jwt:org_id'] } }]";
/// let keys = &Config::parse(text).unwrap().policies[0].limit_keys;
/// assert_eq!(keys[1], LimitKey::Header("x-team".into()));
/// assert_eq!(keys[2].to_string(), "jwt:org_id");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LimitKey {
    /// Whose request it is.
    Tenant,
    /// Which run of an agent it belongs to.
    Session,
    /// Which agent sent it.
    Agent,
    /// Which model it asks.
    Model,
    /// The value of a header, whose name is in lower case.
    Header(String),
    /// The value of a query parameter.
    Query(String),
    /// A claim of the bearer token, which is read without being verified.
    JwtClaim(String),
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant => f.write_str("tenant"),
            Self::Session => f.write_str("session"),
            Self::Agent => f.write_str("agent"),
            Self::Model => f.write_str("model"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::JwtClaim(name) => write!(f, "jwt:{name}"),
        }
    }
}

pub(in crate::sections) fn read(value: Cursor<'_>) -> Read<LimitKey> {
    let text = text(value)?;
    let named = |name: &str, key: fn(String) -> LimitKey| match name {
        "" => {
            let message = format!("{} names nothing after its colon", quote(&text));
            Err(value.refuse(message, "write it like `header:x-team`, `query:team` or `jwt:org_id`"))
        }
        name => Ok(key(name.to_owned())),
    };
    match text.split_once(':') {
        Some(("header", name)) => header_name::parse(name).map(LimitKey::Header).ok_or_else(|| {
            let message = format!("{} cannot be the name of a header", quote(name));
            value.refuse(message, "write letters, digits and `-`, such as `header:x-team`")
        }),
        Some(("query", name)) => named(name, LimitKey::Query),
        Some(("jwt", name)) => named(name, LimitKey::JwtClaim),
        Some(("ip" | "ua", _)) => {
            let message =
                format!("{} has no counterpart: addresses and user agents are not looked at", quote(&text));
            let hint =
                "count by `tenant`, or let the proxy in front set a header and count by `header:<name>`";
            Err(value.refuse(message, hint))
        }
        _ => match &*text {
            "tenant" => Ok(LimitKey::Tenant),
            "session" => Ok(LimitKey::Session),
            "agent" => Ok(LimitKey::Agent),
            "model" => Ok(LimitKey::Model),
            other => Err(value.refuse(format!("{} is not known here", quote(other)), suggest(other, KEYS))),
        },
    }
}

const KEYS: &[&str] =
    &["tenant", "session", "agent", "model", "header:<name>", "query:<name>", "jwt:<claim>"];
