//! Policies: shown, and changed above their file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::DetectorsConfig;
use serde_json::{Map, Value, json};

use crate::agreed::{Setting, SettingChange};
use crate::audit::{Deed, sha256};
use crate::error::Stored;
use crate::observatory::Observatory;
use crate::store::Store;
use crate::writer::Scribe;

/// Whoever has policies: the gateway.
///
/// The observatory keeps the overrides, tells them to this at the start and after each change by any process, and asks
/// it everything that only it can know.
pub trait Policies: Send + Sync {
    /// What is shown: an object with `policies`, each of them with `id`, `mode`, `source` and `spec`, and with
    /// `kill_switches`, each of them with `id`, `key`, `value` and `source`.
    fn list(&self) -> Value;
    /// The spec as it is to be kept under this id, or every problem with it: its field and what is wrong.
    fn checked(&self, id: &str, spec: &Value) -> Result<Value, Vec<(String, String)>>;
    /// Every override from now on, by its id.
    fn replace(&self, overrides: &[(String, Value)]);
    /// The kill switch as it is to be kept under this id, or every problem with it: its field and what is wrong.
    fn checked_switch(&self, id: &str, switch: &Value) -> Result<Value, Vec<(String, String)>>;
    /// Every kill switch beside those of the file from now on, by its id.
    fn replace_switches(&self, switches: &[(String, Value)]);
    /// The detectors and the ladder that a spec stands for; `None` where it does nothing about loops of tools.
    fn detectors(&self, spec: &Value) -> Result<Option<DetectorsConfig>, Vec<(String, String)>>;
    /// The thresholds of [`Observatory::detectors`] are others now. Told once at the start.
    fn thresholds_changed(&self) {}
    /// An operator has changed something here, which others that keep a log of their own have to know.
    fn changed_here(&self, _change: &SettingChange) {}
    /// Budgets against their limits: an object with `budgets`.
    fn budgets(&self) -> Value {
        json!({ "budgets": [] })
    }
}

/// The policies and what is kept above their file.
#[derive(Default)]
pub(crate) struct Governed {
    policies: Mutex<Option<Arc<dyn Policies>>>,
    overrides: Mutex<Overrides>,
    switches: Mutex<Overrides>,
}

/// What is kept above the file, by its id.
pub(crate) type Overrides = Vec<(String, Value)>;

/// What of the file something can be kept above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Book {
    Policies,
    KillSwitches,
}

impl Book {
    /// All of it is kept under this name, as one object.
    const fn setting(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::KillSwitches => "kill_switches",
        }
    }

    /// What a change of it is called in the audit log.
    const fn deed(self) -> &'static str {
        match self {
            Self::Policies => "policy",
            Self::KillSwitches => "kill_switch",
        }
    }

    /// One of it, as other processes are told of it.
    pub(crate) fn named(self, id: String) -> Setting {
        match self {
            Self::Policies => Setting::Policy(id),
            Self::KillSwitches => Setting::KillSwitch(id),
        }
    }
}

/// What is counted of the verdicts of each policy.
const COUNTED: i64 = 24 * 3_600_000;

/// What became of a change of a policy.
pub(crate) enum Change {
    Done(Value),
    Wrong(Vec<(String, String)>),
    /// No gateway has policies here.
    Ungoverned,
    Unknown,
    /// It stands in the config file, and is changed there.
    InFile,
}

impl Governed {
    pub(crate) fn new(overrides: Overrides, switches: Overrides) -> Self {
        Self { policies: Mutex::default(), overrides: Mutex::new(overrides), switches: Mutex::new(switches) }
    }

    /// The overrides that the store holds.
    pub(crate) fn kept(store: &mut Store, book: Book) -> Stored<Overrides> {
        let text = store.setting(book.setting())?.unwrap_or_default();
        let kept: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        Ok(kept.into_iter().collect())
    }

    /// Another process may have changed them.
    pub(crate) fn read_again(&self, store: &mut Store) -> Stored<()> {
        for book in [Book::Policies, Book::KillSwitches] {
            let kept = Self::kept(store, book)?;
            if *self.overrides(book) != kept {
                self.set(book, kept);
            }
        }
        Ok(())
    }

    /// Tells whoever has the policies that the thresholds are others now.
    pub(crate) fn tell_thresholds(&self) {
        if let Some(policies) = self.policies() {
            policies.thresholds_changed();
        }
    }

    /// Tells whoever has the policies what an operator has changed here.
    pub(crate) fn tell_change(&self, change: &SettingChange) {
        if let Some(policies) = self.policies() {
            policies.changed_here(change);
        }
    }

    /// Puts these in force above the file.
    pub(crate) fn set(&self, book: Book, overrides: Overrides) {
        if let Some(policies) = self.policies() {
            match book {
                Book::Policies => policies.replace(&overrides),
                Book::KillSwitches => policies.replace_switches(&overrides),
            }
        }
        *self.overrides(book) = overrides;
    }

    pub(crate) fn policies(&self) -> Option<Arc<dyn Policies>> {
        self.policies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is in force above the file.
    pub(crate) fn overrides(&self, book: Book) -> MutexGuard<'_, Overrides> {
        let overrides = match book {
            Book::Policies => &self.overrides,
            Book::KillSwitches => &self.switches,
        };
        overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observatory {
    /// Says who has the policies. The overrides and thresholds that are kept are told at once.
    pub fn govern(&self, policies: Arc<dyn Policies>) {
        let governed = &self.shared.governed;
        let overrides = governed.overrides(Book::Policies).clone();
        policies.replace(&overrides);
        let switches = governed.overrides(Book::KillSwitches).clone();
        policies.replace_switches(&switches);
        policies.thresholds_changed();
        *governed.policies.lock().unwrap_or_else(PoisonError::into_inner) = Some(policies);
    }

    /// Every policy, with what it did and would have done in the last day.
    pub(crate) async fn policies(&self) -> Stored<Value> {
        let Some(policies) = self.shared.governed.policies() else { return Ok(json!({ "policies": [] })) };
        let since = self.shared.now() - COUNTED;
        let counted = self.read(move |store| store.count_verdicts(since)).await?;
        let mut listed = policies.list();
        let overrides = self.shared.governed.overrides(Book::Policies).clone();
        for policy in listed["policies"].as_array_mut().into_iter().flatten() {
            let id = policy["id"].as_str().unwrap_or_default().to_owned();
            let overridden = overrides.iter().any(|(known, _)| *known == id);
            policy["overridden"] = overridden.into();
            if overridden {
                policy["source"] = "override".into();
            }
            policy["findings"] = counts(counted.iter().filter(|(policy, ..)| *policy == id));
        }
        Ok(listed)
    }

    pub(crate) fn budgets(&self) -> Value {
        self.shared
            .governed
            .policies()
            .map_or_else(|| json!({ "budgets": [] }), |policies| policies.budgets())
    }

    /// Keeps an override above the file, or takes one away.
    pub(crate) async fn change_policy(
        &self,
        operator: &str,
        id: String,
        spec: Option<Value>,
    ) -> Stored<Change> {
        let Some(policies) = self.shared.governed.policies() else { return Ok(Change::Ungoverned) };
        let spec = match spec.map(|spec| policies.checked(&id, &spec)).transpose() {
            Ok(spec) => spec,
            Err(problems) => return Ok(Change::Wrong(problems)),
        };
        let (operator, name) = (operator.to_owned(), id.clone());
        let known = self
            .write(move |scribe| {
                let known = scribe.keep_override(Book::Policies, &operator, &name, spec.clone())?;
                if known {
                    scribe.tell_others(Book::Policies.named(name), spec, operator);
                }
                Ok(known)
            })
            .await?;
        if !known {
            return Ok(Change::Unknown);
        }
        let listed = self.policies().await?;
        let changed = listed["policies"].as_array().into_iter().flatten().find(|policy| policy["id"] == *id);
        Ok(Change::Done(changed.cloned().unwrap_or_else(|| json!({ "id": id, "overridden": false }))))
    }
}

impl Scribe<'_> {
    /// Keeps an override above the file, or takes one away; says whether there was one or is one now.
    pub(crate) fn keep_override(
        &mut self,
        book: Book,
        operator: &str,
        name: &str,
        spec: Option<Value>,
    ) -> Stored<bool> {
        let mut overrides = Governed::kept(self.store, book)?;
        let place = overrides.iter().position(|(known, _)| known == name);
        let before = place.map(|place| overrides.remove(place).1);
        if before.is_none() && spec.is_none() {
            return Ok(false);
        }
        let hash = |spec: &Value| sha256(spec.to_string().as_bytes());
        // A kill switch says why; that is what is asked for afterwards.
        let why =
            spec.as_ref().and_then(|spec| spec["reason"].as_str()).filter(|_| book == Book::KillSwitches);
        let reason = why.map_or_else(|| name.to_owned(), |why| format!("{name}: {why}"));
        self.audit(Deed {
            operator,
            action: book.deed(),
            reason: Some(&reason),
            before: before.as_ref().map(hash),
            after: spec.as_ref().map(hash),
            ..Deed::default()
        })?;
        overrides.extend(spec.map(|spec| (name.to_owned(), spec)));
        let kept: Map<String, Value> = overrides.iter().cloned().collect();
        self.store.put_setting(book.setting(), &Value::Object(kept).to_string())?;
        self.tell_change("policies");
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.governed.set(book, overrides)));
        Ok(true)
    }

    /// Lets the other processes know, once it is written, what was changed here.
    pub(crate) fn tell_others(&mut self, setting: Setting, value: Option<Value>, operator: String) {
        let change = SettingChange { setting, value, operator };
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.governed.tell_change(&change)));
    }
}

fn counts<'a>(counted: impl Iterator<Item = &'a (String, String, bool, u64)>) -> Value {
    let (mut enforced, mut shadow, mut kinds) = (0, 0, Map::new());
    for (_, kind, was_enforced, count) in counted {
        *(if *was_enforced { &mut enforced } else { &mut shadow }) += count;
        let of_kind =
            kinds.entry(kind).or_insert_with(|| json!({ "kind": kind, "enforced": 0, "shadow": 0 }));
        of_kind[if *was_enforced { "enforced" } else { "shadow" }] = (*count).into();
    }
    let by_kind: Vec<Value> = kinds.into_iter().map(|(_, counts)| counts).collect();
    json!({ "enforced": enforced, "shadow": shadow, "by_kind": by_kind })
}
