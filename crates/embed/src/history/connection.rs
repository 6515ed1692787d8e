//! One connection to a Redis, made when it is needed and made again when it breaks.

use std::time::Duration;

use loopbreaker_config::{with_tls_advice, without_roots};
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError, TlsCertificates};
use tokio::sync::Mutex;

use super::HistoryError;

/// A connection that many checks share. Nothing on it waits longer than the limit.
#[derive(Debug)]
pub(super) struct Connection {
    client: Client,
    place: String,
    timeout: Duration,
    open: Mutex<Option<MultiplexedConnection>>,
}

/// Why a command has no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server answered with an error of its own.
    Refused(RedisError),
    /// There was no answer.
    Gone(String),
}

impl Connection {
    pub(super) fn new(url: &str, place: String, timeout: Duration) -> Result<Self, HistoryError> {
        let (url, roots) = without_roots(url);
        let client = if url.starts_with("rediss://") {
            // Whoever came first has chosen the same.
            rustls::crypto::ring::default_provider().install_default().unwrap_or_default();
            let read = |path: std::path::PathBuf| {
                std::fs::read(&path)
                    .map_err(|reason| HistoryError::Roots { path, reason: reason.to_string() })
            };
            let root_cert = roots.map(read).transpose()?;
            Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert })
        } else {
            Client::open(url)
        };
        let client = client.map_err(|_| HistoryError::Address(place.clone()))?;
        Ok(Self { client, place, timeout, open: Mutex::new(None) })
    }

    /// Where the server is, without its password.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Runs one command, or a script, within the limit. A connection that failed is not used again.
    pub(super) async fn run<T>(
        &self,
        command: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, Trouble> {
        let attempt = async {
            let mut connection = self.connected().await?;
            command(&mut connection).await
        };
        match tokio::time::timeout(self.timeout, attempt).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if error.is_unrecoverable_error() || error.is_io_error() => {
                self.forget();
                Err(Trouble::Gone(with_tls_advice(&error.to_string())))
            }
            Ok(Err(error)) => Err(Trouble::Refused(error)),
            // What is stuck may be the connection: the next command tries a new one.
            Err(_) => {
                self.forget();
                Err(Trouble::Gone(format!("no answer within {:?}", self.timeout)))
            }
        }
    }

    pub(super) fn unavailable(&self, reason: &impl ToString) -> HistoryError {
        HistoryError::Unavailable { place: self.place.clone(), reason: reason.to_string() }
    }

    async fn connected(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut open = self.open.lock().await;
        if let Some(connection) = &*open {
            return Ok(connection.clone());
        }
        let connection = self.client.get_multiplexed_async_connection().await?;
        Ok(open.insert(connection).clone())
    }

    fn forget(&self) {
        // Somebody who connects just now holds the lock; that connection is a new one anyway.
        if let Ok(mut open) = self.open.try_lock() {
            *open = None;
        }
    }
}
