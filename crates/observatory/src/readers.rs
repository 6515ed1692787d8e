//! Connections that only read.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::error::{StoreError, Stored};
use crate::options::Source;
use crate::store::Store;

/// Some connections, opened when they are needed.
pub(crate) struct Readers {
    source: Source,
    idle: Mutex<Vec<Store>>,
    permits: Semaphore,
}

impl Readers {
    const MAX: usize = 4;
    /// How long a caller waits for one of them.
    const PATIENCE: Duration = Duration::from_secs(5);

    pub(crate) fn new(source: Source) -> Self {
        Self { source, idle: Mutex::default(), permits: Semaphore::new(Self::MAX) }
    }

    pub(crate) async fn read<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&mut Store) -> Stored<T> + Send + 'static,
    ) -> Stored<T> {
        let place = tokio::time::timeout(Self::PATIENCE, self.permits.acquire()).await;
        let Ok(Ok(_permit)) = place else { return Err(StoreError::Busy) };
        let readers = Arc::clone(&self);
        let reading = tokio::task::spawn_blocking(move || {
            let idle = readers.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut store = match idle {
                Some(store) => store,
                None => readers.source.open_reader()?,
            };
            let result = work(&mut store);
            // A connection that failed is not used again.
            if result.is_ok() {
                readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(store);
            }
            result
        });
        reading.await.unwrap_or_else(|_| Err(StoreError::Other("a reader panicked".to_owned())))
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("source", &self.source).finish_non_exhaustive()
    }
}
