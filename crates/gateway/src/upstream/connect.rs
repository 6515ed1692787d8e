//! One new connection to a provider, plain or by TLS.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use loopbreaker_config::BaseUrl;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Unreachable;
use super::direct::Direct;
use super::line::Line;
use crate::wire::{MAX_HEADERS, Stream};
use crate::within::within;

/// A host that connections go to. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    host: Arc<str>,
    port: u16,
    tls: bool,
}

impl Origin {
    /// The origin of a base URL.
    pub(crate) fn of(url: &BaseUrl) -> Self {
        // An IPv6 address stands in brackets in a URL, and nowhere else.
        let host = url.host().trim_start_matches('[').trim_end_matches(']');
        Self { host: host.into(), port: url.port(), tls: url.is_https() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Makes connections.
pub(crate) struct Connector {
    tls: TlsConnector,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    /// A provider that cannot be reached in this time is away.
    const LIMIT: Duration = Duration::from_secs(10);

    /// A connector that trusts the certificates which this machine trusts.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        let mut roots = rustls::RootCertStore::empty();
        // A machine without certificates can still reach plain upstreams; TLS ones then fail with a clear message.
        let (_, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// A connection for whole requests.
    pub(super) async fn direct(&self, origin: &Origin) -> Result<Direct, Unreachable> {
        self.stream(origin).await.map(Direct::new)
    }

    /// A connection for one request that hyper sends.
    pub(super) async fn line(&self, origin: &Origin) -> Result<Line, Unreachable> {
        let mut builder = http1::Builder::new();
        builder.max_headers(MAX_HEADERS);
        let stream = self.stream(origin).await?;
        let (sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| failed(origin, &error))?;
        // Whoever waits for an answer on this connection is told by it, so there is nothing left to say at its end.
        Ok(Line::new(sender, async move { drop(connection.with_upgrades().await) }))
    }

    async fn stream(&self, origin: &Origin) -> Result<Stream, Unreachable> {
        let connecting = async {
            let stream = TcpStream::connect((&*origin.host, origin.port))
                .await
                .map_err(|error| failed(origin, &error))?;
            stream.set_nodelay(true).map_err(|error| failed(origin, &error))?;
            if !origin.tls {
                return Ok(stream.into());
            }
            let name =
                ServerName::try_from(origin.host.to_string()).map_err(|error| failed(origin, &error))?;
            let stream = self.tls.connect(name, stream).await.map_err(|error| failed(origin, &error))?;
            Ok(stream.into())
        };
        match within(Self::LIMIT, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(failed(origin, &format_args!("no connection within {:?}", Self::LIMIT))),
        }
    }
}

fn failed(origin: &Origin, error: &dyn fmt::Display) -> Unreachable {
    Unreachable::Connect(origin.to_string().into(), error.to_string().into())
}
