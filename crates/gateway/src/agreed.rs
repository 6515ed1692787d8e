//! Policies, thresholds and orders that were changed or given at another process: taken over once this one can keep them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loopbreaker_observatory::{Observatory, OrderElsewhere, SettingChange};
use tokio::sync::Notify;

/// What has been heard and is not kept yet.
#[derive(Debug, Default)]
pub(crate) struct Agreed {
    waiting: Mutex<Waiting>,
    heard: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The newest of each setting.
    settings: BTreeMap<String, SettingChange>,
    /// Orders, oldest first.
    orders: VecDeque<OrderElsewhere>,
}

/// A store that could not write is tried again after this.
const PAUSE: Duration = Duration::from_secs(1);

impl Agreed {
    /// Orders that may wait for a store that does not write; the oldest are given up. The gateway obeys them all the same.
    const MAX_ORDERS: usize = 1_000;

    /// Another process has changed a setting. What cannot be read comes from a newer version, and is left to it.
    pub(crate) fn hear(&self, name: String, value: &str) {
        if let Ok(change) = serde_json::from_str(value) {
            self.waiting().settings.insert(name, change);
            self.heard.notify_one();
        }
    }

    /// Another process was told what a session has to do.
    pub(crate) fn hear_order(&self, order: OrderElsewhere) {
        let mut waiting = self.waiting();
        if waiting.orders.len() >= Self::MAX_ORDERS {
            waiting.orders.pop_front();
        }
        waiting.orders.push_back(order);
        drop(waiting);
        self.heard.notify_one();
    }

    /// Keeps what is heard, one after the other, for as long as its runtime lives.
    pub(crate) async fn follow(self: Arc<Self>, observatory: Arc<Observatory>) {
        loop {
            let kept = match (self.next_order(), self.next_setting()) {
                (Some(order), _) => self.keep_order(&observatory, order).await,
                (None, Some((name, change))) => self.keep_setting(&observatory, &name, change).await,
                (None, None) => {
                    self.heard.notified().await;
                    continue;
                }
            };
            if !kept {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn next_order(&self) -> Option<OrderElsewhere> {
        self.waiting().orders.front().cloned()
    }

    async fn keep_order(&self, observatory: &Observatory, order: OrderElsewhere) -> bool {
        let place = order.place;
        let kept = observatory.take_over(order).await.is_ok();
        let mut waiting = self.waiting();
        if kept && waiting.orders.front().is_some_and(|first| first.place == place) {
            waiting.orders.pop_front();
        }
        kept
    }

    fn next_setting(&self) -> Option<(String, SettingChange)> {
        self.waiting().settings.first_key_value().map(|(name, change)| (name.clone(), change.clone()))
    }

    async fn keep_setting(&self, observatory: &Observatory, name: &str, change: SettingChange) -> bool {
        let kept = observatory.adopt(change.clone()).await.is_ok();
        let mut waiting = self.waiting();
        if kept && waiting.settings.get(name) == Some(&change) {
            waiting.settings.remove(name);
        }
        kept
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
