//! Sessions of agents that only ask the guard.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::error::Stored;
use crate::observatory::Observatory;
use crate::store::Session;

/// Their names, and whose they are.
#[derive(Debug)]
pub(crate) struct Guarded(Mutex<LruCache<String, Arc<str>>>);

const MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

impl Default for Guarded {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX)))
    }
}

impl Guarded {
    /// Remembers that an agent asks the guard about this session. It is kept once a person or a detector has something
    /// to say about it: until then it is nothing but a name, and may be that of a session of the gateway.
    pub(crate) fn meet(&self, tenant: &Arc<str>, name: &str) {
        let mut names = self.names();
        if names.get(name) != Some(tenant) {
            names.put(name.to_owned(), Arc::clone(tenant));
        }
    }

    fn names(&self) -> MutexGuard<'_, LruCache<String, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observatory {
    /// A session that only the guard knows, from now on kept like any other.
    pub(crate) async fn guarded_session(&self, name: &str, tenant: Option<&str>) -> Stored<Option<Session>> {
        let known = self.shared.guarded.names().peek(name).cloned();
        let Some(of) = known.filter(|of| tenant.is_none_or(|tenant| tenant == &**of)) else {
            return Ok(None);
        };
        let name = name.to_owned();
        self.write(move |scribe| {
            let id = scribe.session_named(&of, &name)?;
            Ok(Some(scribe.change(id)?.clone()))
        })
        .await
    }
}
