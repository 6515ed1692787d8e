//! The certificate to listen with: read from its two files, and looked at before anybody relies on it.

use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why a certificate cannot be listened with.
#[derive(Debug, thiserror::Error)]
pub enum BadCertificate {
    /// The file with the certificate chain is to blame.
    #[error("cannot use the certificate {0}: {1}")]
    Chain(String, String),
    /// The file with the private key is to blame.
    #[error("cannot use the private key {0}: {1}")]
    Key(String, String),
}

/// Whether a gateway could listen with these two files.
pub fn check_certificate(cert: &str, key: &str) -> Result<(), BadCertificate> {
    acceptor(cert, key).map(drop)
}

pub(crate) fn acceptor(cert: &str, key: &str) -> Result<TlsAcceptor, BadCertificate> {
    let bad_chain = |why: String| BadCertificate::Chain(cert.to_owned(), why);
    let bad_key = |why: String| BadCertificate::Key(key.to_owned(), why);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.map_err(|error| bad_chain(in_words(&error, "certificate")))?;
    if chain.is_empty() {
        return Err(bad_chain("there is no certificate in it, in PEM".to_owned()));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| bad_key(in_words(&error, "private key")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let signing = provider.key_provider.load_private_key(private.clone_key());
    signing.map_err(|error| bad_key(error.to_string()))?;
    let versions =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config =
        versions.and_then(|versions| versions.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            bad_key(format!("it does not belong to the certificate {cert}"))
        }
        other => bad_chain(other.to_string()),
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn in_words(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("there is no {what} in it, in PEM"),
        other => format!("it is no PEM file: {other}"),
    }
}
