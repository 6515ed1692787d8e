//! Policies and thresholds that were changed at another process: taken over once this one can keep them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loopbreaker_observatory::{Observatory, SettingChange};
use tokio::sync::Notify;

/// What has been heard and is not in force yet.
#[derive(Debug, Default)]
pub(crate) struct Agreed {
    /// The newest of each setting.
    waiting: Mutex<BTreeMap<String, SettingChange>>,
    heard: Notify,
}

/// A store that could not write is tried again after this.
const PAUSE: Duration = Duration::from_secs(1);

impl Agreed {
    /// Another process has changed a setting. What cannot be read comes from a newer version, and is left to it.
    pub(crate) fn hear(&self, name: String, value: &str) {
        if let Ok(change) = serde_json::from_str(value) {
            self.waiting().insert(name, change);
            self.heard.notify_one();
        }
    }

    /// Puts in force what is heard, one after the other, for as long as its runtime lives.
    pub(crate) async fn follow(self: Arc<Self>, observatory: Arc<Observatory>) {
        loop {
            let next = self.waiting().first_key_value().map(|(name, change)| (name.clone(), change.clone()));
            let Some((name, change)) = next else {
                self.heard.notified().await;
                continue;
            };
            if observatory.adopt(change.clone()).await.is_err() {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let mut waiting = self.waiting();
            if waiting.get(&name) == Some(&change) {
                waiting.remove(&name);
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, SettingChange>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
