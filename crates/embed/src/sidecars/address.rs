//! Where a sidecar listens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

/// A Unix socket (`/run/embed.sock` or `unix:/run/embed.sock`) or `http://host:port`.
///
/// ```
/// use loopbreaker_embed::SidecarAddress;
/// let address: SidecarAddress = "/run/embed.sock".parse().unwrap();
/// assert_eq!(address.to_string(), "unix:/run/embed.sock");
/// assert!("http://10.0.0.7:50051".parse::<SidecarAddress>().is_ok());
/// assert!("embed.sock".parse::<SidecarAddress>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarAddress(Place);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Socket(PathBuf),
    Tcp(Uri),
}

/// A text that is no address of a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a sidecar: write a path such as /run/embed.sock, or http://host:port")]
pub struct AddressError(String);

impl SidecarAddress {
    /// A connection that is made when it is first needed, and again when it broke.
    pub(super) fn channel(&self) -> Channel {
        match &self.0 {
            Place::Tcp(uri) => tuned(Endpoint::from(uri.clone())).connect_lazy(),
            Place::Socket(path) => {
                let path = path.clone();
                let connector = service_fn(move |_: Uri| {
                    let path = path.clone();
                    async move { UnixStream::connect(path).await.map(TokioIo::new) }
                });
                // The address is not looked at: the socket is the place.
                tuned(Endpoint::from_static("http://sidecar")).connect_with_connector_lazy(connector)
            }
        }
    }
}

fn tuned(endpoint: Endpoint) -> Endpoint {
    // A peer that is frozen keeps its connections open, so they are asked whether anybody is there.
    endpoint
        .connect_timeout(Duration::from_millis(250))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(2))
}

impl FromStr for SidecarAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refused = || AddressError(text.to_owned());
        if text.starts_with("http://") {
            let uri: Uri = text.parse().map_err(|_| refused())?;
            return uri.port_u16().map(|_| Self(Place::Tcp(uri.clone()))).ok_or_else(refused);
        }
        let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:")).unwrap_or(text);
        let path = PathBuf::from(path);
        if path.is_absolute() { Ok(Self(Place::Socket(path))) } else { Err(refused()) }
    }
}

impl fmt::Display for SidecarAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Socket(path) => write!(f, "unix:{}", path.display()),
            Place::Tcp(uri) => write!(f, "{uri}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SidecarAddress;

    #[test]
    fn paths_and_urls_are_addresses() {
        for (text, shown) in [
            ("/a.sock", "unix:/a.sock"),
            ("unix:/a.sock", "unix:/a.sock"),
            ("unix:///a.sock", "unix:/a.sock"),
            ("http://localhost:9", "http://localhost:9/"),
        ] {
            assert_eq!(text.parse::<SidecarAddress>().unwrap().to_string(), shown);
        }
        for text in ["", "a.sock", "http://", "http://host", "https://host:1", "unix:a"] {
            assert!(text.parse::<SidecarAddress>().is_err(), "{text}");
        }
    }
}
