//! Connections: plain or TLS, HTTP/1.1 or, for gRPC, HTTP/2.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::{Read, Write};
use hyper::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Failure;
use crate::spans::settings::{Protocol, SpanSettings};

/// Makes connections to one address.
pub(super) struct Connector {
    host: String,
    port: u16,
    is_http2: bool,
    is_secure: bool,
    certificate: Option<PathBuf>,
    /// Made when it is first needed: the system's list of authorities is long.
    tls: OnceCell<TlsConnector>,
}

/// A connection that takes requests.
pub(super) enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Connector {
    pub(super) fn new(settings: &SpanSettings) -> Self {
        let (uri, is_grpc) = (&settings.endpoint, settings.protocol == Protocol::Grpc);
        let is_secure = uri.scheme_str() == Some("https");
        let usual = match (is_grpc, is_secure) {
            (true, _) => 4_317,
            (false, true) => 443,
            (false, false) => 80,
        };
        Self {
            host: uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(usual),
            is_http2: is_grpc,
            is_secure,
            certificate: settings.certificate.clone(),
            tls: OnceCell::new(),
        }
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        let stream = TcpStream::connect((&*self.host, self.port)).await;
        let stream = stream.map_err(|error| Failure::soon(format!("no connection: {error}")))?;
        if !self.is_secure {
            return self.shake_hands(TokioIo::new(stream)).await;
        }
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|_| Failure::soon("the collector's name cannot stand in a certificate"))?;
        let stream = self.tls()?.connect(name, stream).await;
        let stream = stream.map_err(|error| Failure::soon(format!("no secure connection: {error}")))?;
        self.shake_hands(TokioIo::new(stream)).await
    }

    async fn shake_hands<I>(&self, stream: I) -> Result<Connection, Failure>
    where
        I: Read + Write + Unpin + Send + 'static,
    {
        // A connection's own work ends with it, and its errors come back with the request that they concern.
        if self.is_http2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(async move { connection.await.unwrap_or_default() });
            Ok(Connection::Http2(sender))
        } else {
            let (sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(async move { connection.await.unwrap_or_default() });
            Ok(Connection::Http1(sender))
        }
    }

    fn tls(&self) -> Result<&TlsConnector, Failure> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls);
        }
        let roots = match &self.certificate {
            Some(path) => roots_in(path)?,
            None => roots_of_the_system(),
        };
        if roots.is_empty() {
            return Err(Failure::soon("no certificate authority to trust was found"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| Failure::soon(format!("no secure connection: {error}")))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![if self.is_http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        Ok(self.tls.get_or_init(|| TlsConnector::from(Arc::new(config))))
    }
}

fn roots_in(path: &Path) -> Result<RootCertStore, Failure> {
    let unreadable = || Failure::soon("the file of OTEL_EXPORTER_OTLP_CERTIFICATE holds no certificates");
    let certificates = CertificateDer::pem_file_iter(path).map_err(|_| unreadable())?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|_| unreadable())?;
        roots.add(certificate).map_err(|_| unreadable())?;
    }
    Ok(roots)
}

fn roots_of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

impl Connection {
    /// Whether the other side has not hung up, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Http1(sender) => !sender.is_closed(),
            Self::Http2(sender) => !sender.is_closed(),
        }
    }

    /// The target as this version of HTTP writes it.
    pub(super) fn target(&self, uri: &Uri) -> Uri {
        match (self, uri.path_and_query()) {
            (Self::Http1(_), Some(path)) => Uri::from(path.clone()),
            _ => uri.clone(),
        }
    }

    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        };
        Ok(response?)
    }
}

impl From<hyper::Error> for Failure {
    fn from(error: hyper::Error) -> Self {
        Self::soon(format!("the connection failed: {error}"))
    }
}
