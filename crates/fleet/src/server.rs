//! A Redis or a cluster of them: where it is, and connections to it.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, RedisFuture, TlsCertificates, Value};

/// Where the shared state is.
#[derive(Clone)]
pub(crate) enum Server {
    One(Box<Client>),
    Cluster(Box<ClusterClient>),
}

/// A connection that many requests share.
#[derive(Clone)]
pub(crate) enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Nobody waits for a connection longer than this.
const CONNECT: Duration = Duration::from_secs(1);

/// What a cluster puts off is asked again after so long: whoever asks has a few milliseconds in all.
const RETRY_MILLIS: u64 = 1;

impl Server {
    /// The server of a URL; `redis+cluster://` names any nodes of a cluster, with commas between them. With `rediss` it
    /// is spoken to by TLS; `roots` are certificates in PEM that are trusted instead of the system's.
    pub(crate) fn at(url: &str, roots: Option<Vec<u8>>) -> Result<Self, RedisError> {
        let trusted = url.starts_with("rediss").then(|| trusting(roots));
        let Some((scheme, rest)) = url.split_once("+cluster://") else {
            let client = match trusted {
                Some(trusted) => Client::build_with_tls(url, trusted),
                None => Client::open(url),
            };
            return client.map(|client| Self::One(Box::new(client)));
        };
        let (credentials, nodes) = rest.rsplit_once('@').map_or(("", rest), |(own, nodes)| (own, nodes));
        let at = if credentials.is_empty() { "" } else { "@" };
        let nodes = nodes.split(['/', '?']).next().unwrap_or_default();
        let urls = nodes.split(',').map(|node| format!("{scheme}://{credentials}{at}{node}"));
        let builder = ClusterClientBuilder::new(urls);
        let builder = match trusted {
            Some(trusted) => builder.certs(trusted),
            None => builder,
        };
        builder
            .connection_timeout(CONNECT)
            // Whoever asks has a limit of its own, far below this one.
            .response_timeout(CONNECT)
            .retries(3)
            .min_retry_wait(RETRY_MILLIS)
            .max_retry_wait(RETRY_MILLIS)
            .build()
            .map(|client| Self::Cluster(Box::new(client)))
    }

    /// Connects. `patience` is how long an answer may take before the connection gives it up.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Connection, RedisError> {
        match self {
            Self::One(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(CONNECT))
                    .set_response_timeout(Some(patience));
                client.get_multiplexed_async_connection_with_config(&config).await.map(Connection::One)
            }
            Self::Cluster(client) => client.get_async_connection().await.map(Connection::Cluster),
        }
    }
}

/// What an encrypted connection trusts, with the cryptography that all of this program uses.
fn trusting(roots: Option<Vec<u8>>) -> TlsCertificates {
    // Whoever came first has chosen the same.
    rustls::crypto::ring::default_provider().install_default().unwrap_or_default();
    TlsCertificates { client_tls: None, root_cert: roots }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::Server;

    #[test]
    fn a_cluster_is_named_by_any_of_its_nodes() {
        for url in [
            "redis+cluster://a:7000,b:7001",
            "redis+cluster://me:secret@a:7000",
            "redis+cluster://a:7000/0",
            "rediss+cluster://a:7000,b:7001",
        ] {
            assert!(matches!(Server::at(url, None), Ok(Server::Cluster(_))), "{url}");
        }
        for url in ["redis://a:6379/1", "rediss://a:6379"] {
            assert!(matches!(Server::at(url, None), Ok(Server::One(_))), "{url}");
        }
        assert!(Server::at("redis://a:not-a-port", None).is_err());
    }
}
