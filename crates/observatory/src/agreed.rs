//! Settings that operators change at run time, where each process keeps a log of its own and all have to agree.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::observatory::Observatory;
use crate::policies::{Book, Governed};
use crate::thresholds::Thresholds;

/// What an operator changed at one process, for the others to take over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingChange {
    /// What it is.
    pub setting: Setting,
    /// What it is now; `None` where the file's own is in force again.
    pub value: Option<Value>,
    /// Who changed it.
    pub operator: String,
}

/// Something that can be changed at run time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// The policy of this id.
    Policy(String),
    /// The kill switch of this id.
    KillSwitch(String),
    /// The thresholds of the detectors.
    Detectors,
}

impl Setting {
    /// Names it among all settings.
    ///
    /// ```
    /// use loopbreaker_observatory::Setting;
    /// assert_eq!(Setting::Policy("default".to_owned()).name(), "policy/default");
    /// assert_eq!(Setting::Detectors.name(), "detectors");
    /// ```
    pub fn name(&self) -> String {
        match self {
            Self::Policy(id) => format!("policy/{id}"),
            Self::KillSwitch(id) => format!("kill_switch/{id}"),
            Self::Detectors => "detectors".to_owned(),
        }
    }
}

impl Observatory {
    /// Takes over what was changed at another process: kept, audited under the name of who did it, and in force. What is
    /// so already stays untouched, and nobody is told of it as of a change that was made here.
    pub async fn adopt(&self, change: SettingChange) -> Result<(), StoreError> {
        let SettingChange { setting, value, operator } = change;
        self.write(move |scribe| {
            let (book, id) = match &setting {
                Setting::Policy(id) => (Book::Policies, id),
                Setting::KillSwitch(id) => (Book::KillSwitches, id),
                Setting::Detectors => {
                    let kept = Thresholds::kept(scribe.store)?;
                    let changed = scribe.shared.thresholds.replaced(&kept, value);
                    if changed.change != kept {
                        scribe.keep_thresholds(&operator, changed)?;
                    }
                    return Ok(());
                }
            };
            let kept = Governed::kept(scribe.store, book)?;
            let before = kept.into_iter().find(|(known, _)| known == id).map(|(_, spec)| spec);
            if before != value {
                scribe.keep_override(book, &operator, id, value)?;
            }
            Ok(())
        })
        .await
    }
}
