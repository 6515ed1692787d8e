//! One connection to the server, on which nothing is waited for without a limit.
//!
//! A server that stands still, and a network that swallows what is sent, answer nothing and close nothing: only our own
//! clock ends such a wait. The connection is then of no use any more and is closed from our side.

use std::collections::HashMap;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement};

use super::in_words;
use super::url::Address;
use crate::database::Param;
use crate::error::{StoreError, Stored};

/// A connection with the runtime that drives it.
pub(super) struct Link {
    runtime: Option<Runtime>,
    client: Option<Client>,
    driving: Option<JoinHandle<()>>,
    statements: HashMap<String, Statement>,
    limit: Duration,
    /// A limit was over: whatever still comes would be the answer to something else.
    is_given_up: bool,
}

/// How long a connection may take, and a sign of life.
pub(super) const GREETING: Duration = Duration::from_secs(5);
/// How long a connection that ends may take to say so to the server.
const FAREWELL: Duration = Duration::from_millis(500);

impl Link {
    /// Statements that are kept prepared; there are fewer of them in the program.
    const MAX_STATEMENTS: usize = 256;

    /// Connects, and makes these settings; each statement may take as long as `limit`.
    pub(super) fn connect(address: &Address, settings: &str, limit: Duration) -> Stored<Self> {
        let failed = |why: String| StoreError::Unreachable(why);
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let config = patient(address.config.clone());
        let tls = address.tls()?;
        let connecting = async {
            let (client, driving) = if let Some(tls) = tls {
                let (client, connection) = config.connect(tls).await?;
                // Its end is seen by the client.
                (client, tokio::spawn(async { drop(connection.await) }))
            } else {
                let (client, connection) = config.connect(NoTls).await?;
                (client, tokio::spawn(async { drop(connection.await) }))
            };
            client.batch_execute(settings).await?;
            Ok::<_, Error>((client, driving))
        };
        let connected = within(&runtime, GREETING, connecting);
        let (client, driving) = match connected {
            Some(Ok(connected)) => connected,
            Some(Err(error)) => {
                runtime.shutdown_background();
                return Err(failed(in_words(&error)));
            }
            None => {
                runtime.shutdown_background();
                return Err(silent(GREETING));
            }
        };
        Ok(Self {
            runtime: Some(runtime),
            client: Some(client),
            driving: Some(driving),
            statements: HashMap::new(),
            limit,
            is_given_up: false,
        })
    }

    /// Whether nothing can be asked any more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_given_up || self.client.as_ref().is_none_or(Client::is_closed)
    }

    /// Whether a limit was over.
    pub(super) const fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Sends statements without values.
    pub(super) fn batch(&mut self, sql: &str) -> Stored<()> {
        self.batch_within(self.limit, sql)
    }

    /// Sends statements that may take longer than others.
    pub(super) fn batch_within(&mut self, limit: Duration, sql: &str) -> Stored<()> {
        self.wait(limit, async |client| client.batch_execute(sql).await)
    }

    /// Asks whether the server is there: for statements that may take so long that their silence says nothing.
    pub(super) fn greet(&mut self) -> Stored<()> {
        self.batch_within(GREETING, "")
    }

    pub(super) fn execute(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<u64> {
        let statement = self.prepared(sql)?;
        self.wait(self.limit, async |client| client.execute(&statement, &borrowed(values)).await)
    }

    pub(super) fn query(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Vec<Row>> {
        let statement = self.prepared(sql)?;
        self.wait(self.limit, async |client| client.query(&statement, &borrowed(values)).await)
    }

    fn prepared(&mut self, sql: &str) -> Stored<Statement> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let spelt = spelt(sql);
        let statement = self.wait(self.limit, async |client| client.prepare(&spelt).await)?;
        if self.statements.len() >= Self::MAX_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn wait<T>(&mut self, limit: Duration, ask: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Stored<T> {
        let (Some(runtime), Some(client), false) = (&self.runtime, &self.client, self.is_given_up) else {
            return Err(StoreError::Unreachable("the connection was given up".to_owned()));
        };
        let Some(answer) = within(runtime, limit, ask(client)) else {
            self.is_given_up = true;
            return Err(silent(limit));
        };
        Ok(answer?)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let is_closed = self.is_closed();
        drop(self.client.take());
        if is_closed {
            // Nothing is waited for, nor in the middle of somebody else's runtime.
            runtime.shutdown_background();
            return;
        }
        let Some(driving) = self.driving.take() else { return };
        // A runtime must not wait inside of another one.
        let ending = std::thread::spawn(move || {
            within(&runtime, FAREWELL, driving);
            runtime.shutdown_background();
        });
        drop(ending.join());
    }
}

/// The outcome, or `None` when the limit was over before it.
fn within<T>(runtime: &Runtime, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    runtime.block_on(async { tokio::time::timeout(limit, work).await.ok() })
}

fn silent(limit: Duration) -> StoreError {
    StoreError::Unreachable(format!("the server has said nothing for {} s", limit.as_secs()))
}

/// The kernel gives a connection up, too, when nobody on the other side acknowledges what was sent.
fn patient(mut config: Config) -> Config {
    config
        .application_name("loopbreaker")
        .connect_timeout(GREETING)
        .tcp_user_timeout(GREETING)
        .keepalives(true)
        .keepalives_idle(GREETING)
        .keepalives_interval(Duration::from_secs(1))
        .keepalives_retries(5);
    config
}

/// A statement in this server's spelling.
fn spelt(sql: &str) -> String {
    sql.replace('?', "$").replace("CROSS JOIN", "JOIN")
}

fn borrowed<'a>(values: &'a [Param<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

#[cfg(test)]
mod tests {
    use super::spelt;

    #[test]
    fn statements_are_spelt_as_the_server_likes_them() {
        assert_eq!(spelt("SELECT ?1 FROM a CROSS JOIN b ON ?12"), "SELECT $1 FROM a JOIN b ON $12");
    }
}
