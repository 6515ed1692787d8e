//! The thresholds that are in force: those of the file, with what was changed at run time above them.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use loopbreaker::{DetectorsConfig, Guard, RedundancyRules};
use serde_json::{Map, Value};

use crate::agreed::Setting;
use crate::audit::{Deed, sha256};
use crate::detectors::{Problem, changed, merged, shown};
use crate::error::{StoreError, Stored};
use crate::observatory::Observatory;
use crate::store::Store;
use crate::writer::Scribe;

/// What is changed above the file is kept under this name.
const SETTING: &str = "detectors";

/// The thresholds of this moment, and what was made of them.
#[derive(Debug)]
pub(crate) struct Thresholds(RwLock<Running>);

#[derive(Debug)]
struct Running {
    /// What the file says.
    written: DetectorsConfig,
    /// What stands above it, in the words of the API.
    change: Value,
    config: Arc<DetectorsConfig>,
    guard: Guard,
    redundancy: RedundancyRules,
    /// Counts the changes of `redundancy`.
    generation: u64,
}

impl Running {
    fn new(written: DetectorsConfig, change: Value, generation: u64) -> Self {
        // What was sound above another file may not be above this one; then the file's own stay.
        let config = changed(&written, &change).unwrap_or_else(|_| written.clone());
        let (guard, redundancy) = (Guard::new(&config), RedundancyRules::compile(&config.redundancy));
        Self { written, change, config: Arc::new(config), guard, redundancy, generation }
    }

    /// The same with other settings. The guard starts afresh only when its own have changed.
    fn renew(&mut self, written: DetectorsConfig, change: Value) {
        let new = Self::new(written, change, self.generation + 1);
        if self.config.sentinel == new.config.sentinel && self.config.redundancy == new.config.redundancy {
            (self.written, self.change, self.config) = (new.written, new.change, new.config);
        } else {
            *self = new;
        }
    }
}

/// What a change leads to.
pub(crate) struct Changed {
    /// What stands above the file then.
    pub(crate) change: Value,
    before: DetectorsConfig,
    after: DetectorsConfig,
}

impl Thresholds {
    /// Those of the file with what is kept above them.
    pub(crate) fn new(written: DetectorsConfig, kept: Value) -> Self {
        Self(RwLock::new(Running::new(written, kept, 0)))
    }

    /// What the store holds of them.
    pub(crate) fn kept(store: &mut Store) -> Stored<Value> {
        let text = store.setting(SETTING)?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_else(|_| nothing()))
    }

    pub(crate) fn config(&self) -> Arc<DetectorsConfig> {
        Arc::clone(&self.read().config)
    }

    pub(crate) fn guard(&self) -> Guard {
        self.read().guard.clone()
    }

    /// The rules that say what a redundant repeat is, and a number that changes with them.
    pub(crate) fn redundancy(&self) -> (RedundancyRules, u64) {
        let running = self.read();
        (running.redundancy.clone(), running.generation)
    }

    /// Puts something else above the file; says whether that is new.
    pub(crate) fn set_change(&self, change: Value) -> bool {
        let mut running = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = running.change != change;
        if is_new {
            let written = running.written.clone();
            running.renew(written, change);
        }
        is_new
    }

    pub(crate) fn set_written(&self, written: DetectorsConfig) {
        let mut running = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let change = running.change.clone();
        running.renew(written, change);
    }

    /// What would stand above the file with one more change above what is kept, and the thresholds before and after.
    /// Without a change nothing stands above it.
    fn with(&self, kept: Value, change: Option<&Value>) -> Result<Changed, Vec<Problem>> {
        let written = &self.read().written;
        // A change that does not fit the file any more must not stand in the way of others.
        let (kept, before) = match changed(written, &kept) {
            Ok(before) => (kept, before),
            Err(_) => (nothing(), written.clone()),
        };
        let change = change.map_or_else(nothing, |change| merged(kept, change));
        let after = changed(written, &change)?;
        Ok(Changed { change, before, after })
    }

    /// What follows when something else stands above the file, as another process says. What is not sound above ours is
    /// kept, but not in force.
    pub(crate) fn replaced(&self, kept: &Value, change: Option<Value>) -> Changed {
        let written = &self.read().written;
        let change = change.unwrap_or_else(nothing);
        let config = |change| changed(written, change).unwrap_or_else(|_| written.clone());
        Changed { before: config(kept), after: config(&change), change }
    }

    fn read(&self) -> RwLockReadGuard<'_, Running> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observatory {
    /// The running thresholds.
    pub fn detectors(&self) -> Arc<DetectorsConfig> {
        self.shared.thresholds.config()
    }

    /// The file says something else now. What was changed at run time stays above it.
    pub fn rewritten(&self, detectors: DetectorsConfig) {
        self.shared.thresholds.set_written(detectors);
    }

    /// Changes thresholds at run time: whole, or not at all. Without a change, those of the file are in force again.
    pub async fn configure(
        &self,
        operator: &str,
        change: Option<Value>,
    ) -> Result<Result<Value, Vec<(String, String)>>, StoreError> {
        let operator = operator.to_owned();
        self.write(move |scribe| {
            let kept = Thresholds::kept(scribe.store)?;
            let changed = match scribe.shared.thresholds.with(kept, change.as_ref()) {
                Ok(changed) => changed,
                Err(problems) => return Ok(Err(problems)),
            };
            let value = changed.change.clone();
            let after = scribe.keep_thresholds(&operator, changed)?;
            scribe.tell_others(Setting::Detectors, Some(value), operator);
            Ok(Ok(after))
        })
        .await
    }
}

impl Scribe<'_> {
    /// Keeps what stands above the file; gives the thresholds back that are in force then.
    pub(crate) fn keep_thresholds(&mut self, operator: &str, changed: Changed) -> Stored<Value> {
        let Changed { change, before, after } = changed;
        let (before, after) = (shown(&before), shown(&after));
        self.store.put_setting(SETTING, &change.to_string())?;
        self.audit(Deed {
            operator,
            action: "config",
            before: Some(sha256(before.to_string().as_bytes())),
            after: Some(sha256(after.to_string().as_bytes())),
            ..Deed::default()
        })?;
        self.tell_change("detectors");
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.change_thresholds(change)));
        Ok(after)
    }
}

/// Nothing is changed.
fn nothing() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use loopbreaker::DetectorsConfig;
    use serde_json::json;

    use super::{Thresholds, nothing};

    fn thresholds() -> Thresholds {
        Thresholds::new(DetectorsConfig::default(), nothing())
    }

    fn change(thresholds: &Thresholds, change: &serde_json::Value) {
        let kept = thresholds.read().change.clone();
        let changed = thresholds.with(kept, Some(change)).ok().unwrap();
        thresholds.set_change(changed.change);
    }

    #[test]
    fn what_the_file_says_later_counts_where_nobody_changed_it() {
        let thresholds = thresholds();
        change(&thresholds, &json!({ "entropy": { "loop_below": 0.4 } }));
        let mut written = DetectorsConfig::default();
        (written.entropy.window_size, written.entropy.loop_below) = (9, 0.1);
        thresholds.set_written(written);
        let entropy = thresholds.config().entropy;
        assert_eq!((entropy.window_size, entropy.loop_below), (9, 0.4));
    }

    #[test]
    fn changes_add_up_and_can_be_taken_back() {
        let thresholds = thresholds();
        change(&thresholds, &json!({ "sentinel": { "default": { "threshold": 4 } } }));
        change(&thresholds, &json!({ "sentinel": { "default": { "window_size": 20 }, "bypass": ["poll"] } }));
        let config = thresholds.config();
        let limit = &config.sentinel.default;
        assert_eq!((limit.threshold(), limit.window_size()), (4, 20));
        let kept = thresholds.read().change.clone();
        thresholds.set_change(thresholds.with(kept, None).ok().unwrap().change);
        assert_eq!(*thresholds.config(), DetectorsConfig::default());
    }

    #[test]
    fn a_change_that_does_not_fit_the_file_any_more_is_not_in_force_and_blocks_no_other() {
        let thresholds = thresholds();
        change(&thresholds, &json!({ "entropy": { "loop_below": 0.4 } }));
        let mut written = DetectorsConfig::default();
        (written.entropy.loop_below, written.entropy.warn_up_to) = (0.1, 0.2);
        thresholds.set_written(written.clone());
        assert_eq!(*thresholds.config(), written);
        change(&thresholds, &json!({ "redundancy": { "window": 32 } }));
        assert_eq!(thresholds.config().redundancy.window(), 32);
    }

    #[test]
    fn the_guard_goes_on_when_its_own_thresholds_stay() {
        let thresholds = thresholds();
        change(&thresholds, &json!({ "entropy": { "loop_below": 0.4 } }));
        assert_eq!(thresholds.redundancy().1, 0);
        change(&thresholds, &json!({ "redundancy": { "window": 32 } }));
        assert_eq!(thresholds.redundancy().1, 1);
    }
}
