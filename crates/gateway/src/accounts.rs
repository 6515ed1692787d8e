//! Which budgets are in use, by names that people know: the ledger itself keeps hashes.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use loopbreaker::Timestamp;
use loopbreaker_budget::{Charge, Ledger, Window};
use loopbreaker_telemetry::mask;
use lru::LruCache;
use serde_json::{Value, json};

use crate::settings::{Applied, Budget};

/// The budgets of money that were charged last.
#[derive(Debug)]
pub(crate) struct Accounts {
    known: Mutex<LruCache<u128, Account>>,
}

#[derive(Debug)]
struct Account {
    policy: String,
    rule: String,
    key: String,
    value: String,
    warn_at: Option<f64>,
    charge: Charge,
}

impl Default for Accounts {
    fn default() -> Self {
        let most = NonZeroUsize::new(Self::MAX).unwrap_or(NonZeroUsize::MIN);
        Self { known: Mutex::new(LruCache::new(most)) }
    }
}

impl Accounts {
    /// More than this are too many to show; those that were charged longest ago are left out.
    const MAX: usize = 1_000;

    /// A request is charged to a budget. `value` names whose it is.
    pub(crate) fn charged(
        &self,
        charge: Charge,
        applied: &Applied<'_>,
        budget: &Budget,
        value: impl FnOnce() -> String,
    ) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&charge.key).is_some_and(|account| account.charge.limit == charge.limit) {
            return;
        }
        let keys: Vec<String> = budget.rule.keys.iter().map(ToString::to_string).collect();
        let account = Account {
            policy: applied.policy.id.to_string(),
            rule: budget.rule.id.clone(),
            key: keys.join(", "),
            value: mask(&value()).into_owned(),
            warn_at: budget.rule.warn_at.first().copied(),
            charge,
        };
        known.put(charge.key, account);
    }

    /// Each with what is used of it, the fullest first.
    pub(crate) fn list(&self, ledger: &Ledger, now: Timestamp) -> Vec<Value> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown: Vec<(f64, Value)> =
            known.iter().map(|(_, account)| account.show(ledger, now)).collect();
        shown.sort_by(|one, other| other.0.total_cmp(&one.0));
        shown.into_iter().map(|(_, budget)| budget).collect()
    }
}

impl Account {
    fn show(&self, ledger: &Ledger, now: Timestamp) -> (f64, Value) {
        let charge = self.charge;
        let used = ledger.standings(&[charge], now).first().map_or(0, |standing| standing.used);
        let share = used as f64 / charge.limit.amount.max(1) as f64;
        let state = match self.warn_at {
            _ if share >= 1.0 => "exceeded",
            Some(warn_at) if share >= warn_at => "warn",
            _ => "ok",
        };
        let period = match charge.limit.window {
            Window::Session => None,
            Window::Seconds(seconds) => Some(format!("{seconds}s")),
        };
        let shown = json!({
            "policy": self.policy, "rule": self.rule, "key": self.key, "value": self.value, "period": period,
            "limit_usd": charge.limit.amount as f64 / 1e6, "used_usd": used as f64 / 1e6,
            "warn_at": self.warn_at, "state": state,
        });
        (share, shown)
    }
}
