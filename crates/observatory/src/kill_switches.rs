//! Kill switches beside those of the file: thrown and released while everything runs.

use serde_json::{Value, json};

use crate::agreed::SettingChange;
use crate::error::Stored;
use crate::observatory::Observatory;
use crate::policies::{Book, Change};

/// Every request is held against each of them, so there is an end to their number.
const MAX: usize = 1_000;

/// What is told of a switch that holds and is not written down.
const UNWRITTEN: &str =
    "it holds, but the store fails: it is not in the audit log, and ends with this process";

impl Observatory {
    /// Every kill switch, those of the file included.
    pub(crate) fn kill_switches(&self) -> Vec<Value> {
        let listed = self.shared.governed.policies().map(|policies| policies.list());
        let listed = listed.and_then(|mut listed| match listed["kill_switches"].take() {
            Value::Array(switches) => Some(switches),
            _ => None,
        });
        listed.unwrap_or_default()
    }

    /// Throws a kill switch: whoever it names is refused from the next request on. One of the same id is replaced.
    pub(crate) async fn throw_switch(&self, operator: &str, id: String, switch: &Value) -> Stored<Change> {
        let governed = &self.shared.governed;
        let Some(policies) = governed.policies() else { return Ok(Change::Ungoverned) };
        let switch = match policies.checked_switch(&id, switch) {
            Ok(switch) => switch,
            Err(problems) => return Ok(Change::Wrong(problems)),
        };
        let mut thrown = governed.overrides(Book::KillSwitches).clone();
        thrown.retain(|(known, _)| *known != id);
        if thrown.len() >= MAX {
            let message =
                format!("{MAX} kill switches are thrown; release those that are not needed any more");
            return Ok(Change::Wrong(vec![("id".to_owned(), message)]));
        }
        let written = self.change_switch(operator, &id, Some(switch.clone())).await;
        if written.is_err() {
            // Whoever wants to stop an agent must be able to, also while nothing can be written down.
            thrown.push((id.clone(), switch.clone()));
            governed.set(Book::KillSwitches, thrown);
            governed.tell_change(&SettingChange {
                setting: Book::KillSwitches.named(id.clone()),
                value: Some(switch),
                operator: operator.to_owned(),
            });
        }
        let shown = self.kill_switches().into_iter().find(|shown| shown["id"] == *id);
        let mut shown = shown.unwrap_or_else(|| json!({ "id": id }));
        if written.is_err() {
            shown["note"] = UNWRITTEN.into();
        }
        Ok(Change::Done(shown))
    }

    /// Releases a kill switch that was thrown at run time.
    pub(crate) async fn release_switch(&self, operator: &str, id: String) -> Stored<Change> {
        if self.shared.governed.policies().is_none() {
            return Ok(Change::Ungoverned);
        }
        if self.change_switch(operator, &id, None).await? {
            return Ok(Change::Done(json!({ "id": id, "released": true })));
        }
        let is_in_file =
            self.kill_switches().iter().any(|shown| shown["source"] == "file" && shown["value"] == *id);
        Ok(if is_in_file { Change::InFile } else { Change::Unknown })
    }

    /// Writes a switch down, or that there is none any more; says whether there was one or is one now.
    async fn change_switch(&self, operator: &str, id: &str, switch: Option<Value>) -> Stored<bool> {
        let (operator, id) = (operator.to_owned(), id.to_owned());
        self.write(move |scribe| {
            let known = scribe.keep_override(Book::KillSwitches, &operator, &id, switch.clone())?;
            if known {
                scribe.tell_others(Book::KillSwitches.named(id), switch, operator);
            }
            Ok(known)
        })
        .await
    }
}
