//! `tls`: the certificate to listen with.

use crate::cursor::{Cursor, Read};
use crate::kinds::filled;

/// The certificate to listen with. The files are read by whoever listens; `~` is not expanded here.
///
/// ```
/// let config = loopbreaker_config::Config::parse("tls: { cert: /etc/lb/cert.pem, key: /etc/lb/key.pem }").unwrap();
/// assert_eq!(config.tls.unwrap().cert, "/etc/lb/cert.pem");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The file with the certificate chain, PEM.
    pub cert: String,
    /// The file with the private key, PEM.
    pub key: String,
}

pub(super) fn read(section: Cursor<'_>) -> Read<Tls> {
    let mut fields = section.map()?;
    let cert = fields.required("cert", "write the path of the certificate, a PEM file", filled);
    let key = fields.required("key", "write the path of the private key, a PEM file", filled);
    fields.finish();
    Ok(Tls { cert: cert?, key: key? })
}
