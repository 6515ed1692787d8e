//! Vectors of the last texts of each tenant and session.

mod clock;
mod connection;
mod list;
mod memory;
mod stack;
mod tag;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use connection::Connection;
pub use list::RedisList;
pub use memory::MemoryHistory;
pub use stack::RedisStack;

/// Remembers the last vectors of each key and compares a new one with them.
///
/// ```
/// use std::time::Duration;
/// use loopbreaker_embed::{Entry, History, HistoryLimits, Key, MemoryHistory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let history = MemoryHistory::new(HistoryLimits::default());
/// let key = Key { tenant: "acme", session: "run-1" };
/// let first = Entry { id: 1, vector: &[1.0, 0.0], prompt: None };
/// assert!(history.exchange(key, first).await.unwrap().is_empty());
/// let second = Entry { id: 2, vector: &[0.0, 1.0], prompt: None };
/// let neighbours = history.exchange(key, second).await.unwrap();
/// assert_eq!((neighbours[0].id, neighbours[0].similarity), (1, 0.5));
/// # }
/// ```
pub trait History: Send + Sync + fmt::Debug {
    /// The similarities of the last entries of this key, newest first; then the new one is remembered too. Two at once
    /// see each other, and neither waits longer than the store's limit.
    fn exchange<'a>(&'a self, key: Key<'a>, entry: Entry<'a>) -> Pending<'a, Vec<Neighbour>>;

    /// Makes ready what has to be there, for vectors with this many dimensions.
    fn prepare(&self, dimensions: usize) -> Pending<'_, ()>;
}

/// What a store will have answered.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, HistoryError>> + Send + 'a>>;

/// Whose history: nobody else's entries are ever seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// One of its sessions; empty for all of them together.
    pub session: &'a str,
}

/// What is remembered.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Unlike that of any other entry.
    pub id: u64,
    /// The vector, of any length but 0.
    pub vector: &'a [f32],
    /// The text in clear, where it may be kept.
    pub prompt: Option<&'a str>,
}

/// An entry of before.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// Which one.
    pub id: u64,
    /// From 1 (the same direction) to 0 (the opposite one): 1 − cosine distance / 2.
    pub similarity: f64,
    /// Its text, where it was kept.
    pub prompt: Option<String>,
}

/// How much is remembered, and how long an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Entries of each key.
    pub size: usize,
    /// How long an entry is remembered.
    pub ttl: Duration,
    /// How long a store may take to answer.
    pub timeout: Duration,
    /// Bytes that a history in memory may take; whoever was quiet longest goes first.
    pub max_bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        let (ttl, timeout) = (Duration::from_secs(3_600), Duration::from_millis(250));
        Self { size: 5, ttl, timeout, max_bytes: 64 << 20 }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The store's address cannot be understood.
    #[error(
        "{0} is no address of a store: write memory, redis://host:port, or redis://host:port?vector=hnsw, with rediss for TLS"
    )]
    Address(String),
    /// The certificates that are to be trusted cannot be read.
    #[error("the certificates of {} cannot be read: {reason}; `sslrootcert` names a PEM file", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The store is away, too slow, full, or refuses.
    #[error("the store at {place} does not answer: {reason}")]
    Unavailable {
        /// Where it is, without its password.
        place: String,
        /// What it said.
        reason: String,
    },
    /// The index is gone; it is being made again.
    #[error(
        "the index {index} was lost and is being made again: the texts of before are compared once more from now on"
    )]
    IndexLost {
        /// Its name.
        index: &'static str,
    },
    /// The server cannot search vectors.
    #[error(
        "the server at {place} has no search module: use Redis Stack, or take `?vector=hnsw` out of the address"
    )]
    NoSearch {
        /// Where it is, without its password.
        place: String,
    },
    /// The index was made for another model.
    #[error(
        "the index {index} is for vectors of {found}, the model gives {wanted}: remove it with `FT.DROPINDEX {index} DD`, or use another server"
    )]
    OtherDimension {
        /// Its name.
        index: &'static str,
        /// Its dimension.
        found: usize,
        /// The model's dimension.
        wanted: usize,
    },
}

/// The store that an address names: `memory`, `redis://…`, or `redis://…?vector=hnsw`; with `rediss` by TLS, where
/// `sslrootcert=…` names a PEM file that is trusted instead of the system's certificates.
///
/// ```
/// use loopbreaker_embed::{HistoryLimits, open_history};
/// assert!(open_history("memory", HistoryLimits::default()).is_ok());
/// assert!(open_history("redis://127.0.0.1:6379?vector=hnsw", HistoryLimits::default()).is_ok());
/// assert!(open_history("mysql://127.0.0.1", HistoryLimits::default()).is_err());
/// ```
pub fn open_history(address: &str, limits: HistoryLimits) -> Result<Arc<dyn History>, HistoryError> {
    if address == "memory" {
        return Ok(Arc::new(MemoryHistory::new(limits)));
    }
    let (base, query) = address.split_once('?').unwrap_or((address, ""));
    let (mut others, mut vector) = (Vec::new(), false);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("vector", "hnsw")) => vector = true,
            Some(("vector", _)) | None => return Err(HistoryError::Address(shown(address))),
            Some(_) => others.push(pair),
        }
    }
    let url = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    let connection = Connection::new(&url, shown(address), limits.timeout)?;
    Ok(if vector {
        Arc::new(RedisStack::new(connection, limits))
    } else {
        Arc::new(RedisList::new(connection, limits))
    })
}

/// The address without a user name, a password, or anything else that may be one.
pub(crate) fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return "the configured store".to_owned() };
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{}", place.split('?').next().unwrap_or_default())
}

/// Milliseconds since 1970.
fn now_millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{HistoryLimits, open_history};

    #[test]
    fn a_wrong_address_is_told_without_its_password() {
        for address in ["mysql://me:secret@cache", "redis://me:secret@cache?vector=flat", "secret"] {
            let error = open_history(address, HistoryLimits::default()).unwrap_err().to_string();
            assert!(!error.contains("secret") && error.contains("redis://host:port"), "{error}");
        }
    }
}
