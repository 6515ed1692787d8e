//! `admin`: who may look, who may act, and who may say which tenant a request belongs to.

use std::fmt;

use crate::cursor::{Cursor, Read};
use crate::header_name;
use crate::kinds::{flag, text};
use crate::path::quote;

/// Who may look, who may act, and who may say which tenant a request belongs to.
///
/// ```
/// use loopbreaker_config::{Config, Role};
/// let hash = "ab".repeat(32);
/// let text = format!("admin: {{ tokens: [{{ role: operator, sha256: {hash} }}] }}");
/// let admin = Config::parse(&text).unwrap().admin;
/// assert_eq!((admin.tokens[0].role, admin.tokens[0].sha256), (Role::Operator, [0xAB; 32]));
/// assert_eq!(admin.tenant_header, "x-tenant-id");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// Who may use the API and the dashboard; without any, they serve this machine only.
    pub tokens: Vec<Token>,
    /// Whether the tenant's header is believed on a listener that others can reach too. On a loopback listener it
    /// always is.
    pub trust_tenant_header: bool,
    /// The header that names the tenant, in lower case.
    pub tenant_header: String,
}

/// One token, known by its hash only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What its holder may do.
    pub role: Role,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look.
    Viewer,
    /// Look and act: pause, resume, reject.
    Operator,
}

impl Role {
    /// The name in the config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { tokens: Vec::new(), trust_tenant_header: false, tenant_header: "x-tenant-id".to_owned() }
    }
}

/// Hashes are no secrets, but nobody needs them in a log either.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("role", &self.role).finish_non_exhaustive()
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<Admin> {
    let default = Admin::default();
    let mut fields = section.map()?;
    let tokens = fields.field("tokens", default.tokens, |value| value.list(token));
    let trust_tenant_header = fields.field("trust_tenant_header", default.trust_tenant_header, flag);
    let tenant_header = fields.field("tenant_header", default.tenant_header, |value| {
        let name = text(value)?;
        header_name::parse(&name).ok_or_else(|| {
            let message = format!("{} cannot be the name of a header", quote(&name));
            value.refuse(message, "write letters, digits and `-`, such as `X-Tenant-ID`")
        })
    });
    fields.finish();
    Ok(Admin { tokens: tokens?, trust_tenant_header: trust_tenant_header?, tenant_header: tenant_header? })
}

fn token(value: Cursor<'_>) -> Read<Token> {
    let mut fields = value.map()?;
    let role = fields.required("role", "write `role: viewer` or `role: operator`", |value| {
        value.choice(&[Role::Viewer, Role::Operator].map(|role| (role.as_str(), role)))
    });
    let sha256 = fields.required("sha256", HASH_HINT, sha256);
    fields.finish();
    Ok(Token { role: role?, sha256: sha256? })
}

fn sha256(value: Cursor<'_>) -> Read<[u8; 32]> {
    let text = text(value)?;
    if matches!(&*text, "…" | "...") {
        value.notice("this is a placeholder, so no token fits it", HASH_HINT);
        // Nobody knows a text with this hash, so the door stays shut.
        return Ok([0; 32]);
    }
    from_hex(&text).ok_or_else(|| value.refuse("this is no SHA-256: 64 hexadecimal digits", HASH_HINT))
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut hash = [0; 32];
    if text.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

const HASH_HINT: &str = "write what `printf %s \"$TOKEN\" | sha256sum` says, in quotes";
