//! Settings that were changed at run time: the newest of each name is kept in Redis under a version, so that a process
//! that starts later knows it too. A message only says that there is one.
//!
//! What is read is never written again, unless Redis has lost it; then it is brought back under the version that it
//! had. So a change goes round once, however many processes hear of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::ScriptInvocation;

use crate::order::ORDERS;
use crate::scripts::SETTING;

/// Where they are.
pub(crate) const SETTINGS: &str = "{lb}:settings";

/// What this process knows of them.
#[derive(Debug, Default)]
pub(crate) struct Settings(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    /// Changes that were made here and have not reached Redis yet, each with its number.
    unwritten: BTreeMap<String, (u64, String)>,
    changes: u64,
    /// The newest that was read of each, with its version.
    newest: BTreeMap<String, (u64, String)>,
}

impl Settings {
    /// It was changed here.
    pub(crate) fn change(&self, name: &str, value: String) {
        let mut inside = self.lock();
        inside.changes += 1;
        let number = inside.changes;
        inside.unwritten.insert(name.to_owned(), (number, value));
    }

    /// A change that has to be written, and its number.
    pub(crate) fn unwritten(&self, name: &str) -> Option<(u64, String)> {
        self.lock().unwritten.get(name).cloned()
    }

    /// The change of this number is written.
    pub(crate) fn written(&self, name: &str, number: u64) {
        let mut inside = self.lock();
        if inside.unwritten.get(name).is_some_and(|(newest, _)| *newest == number) {
            inside.unwritten.remove(name);
        }
    }

    /// Takes in what Redis has; gives the value back when it is news. While a change of our own is on its way it is none:
    /// ours will stand above it.
    pub(crate) fn read(&self, name: &str, kept: &str) -> Option<String> {
        let (version, value) = kept.split_once(' ')?;
        let version: u64 = version.parse().ok()?;
        let mut inside = self.lock();
        let is_old = inside.newest.get(name).is_some_and(|(newest, _)| *newest >= version);
        if is_old || inside.unwritten.contains_key(name) {
            return None;
        }
        inside.newest.insert(name.to_owned(), (version, value.to_owned()));
        Some(value.to_owned())
    }

    /// What Redis has lost, of all that it has: name, version and value.
    pub(crate) fn lost_by(&self, kept: &BTreeMap<String, String>) -> Vec<(String, u64, String)> {
        let version_of =
            |kept: &String| kept.split_once(' ').and_then(|(version, _)| version.parse::<u64>().ok());
        let inside = self.lock();
        let lost = inside.newest.iter().filter(|(name, (version, _))| {
            kept.get(*name).and_then(version_of).is_none_or(|kept| kept < *version)
        });
        lost.map(|(name, (version, value))| (name.clone(), *version, value.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The call that writes one: under a new version, or under the one that it had.
pub(crate) fn writing(
    name: &str,
    value: &str,
    version: Option<u64>,
    origin: u64,
) -> ScriptInvocation<'static> {
    let mut call = SETTING.prepare_invoke();
    call.key(SETTINGS).key(ORDERS);
    call.arg(name).arg(value).arg(version.unwrap_or(0)).arg(origin);
    call
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn what_was_read_is_news_once_and_never_when_it_is_older() {
        let settings = Settings::default();
        assert_eq!(settings.read("a", "5 five").as_deref(), Some("five"));
        for kept in ["5 five", "4 four", "no version", "6"] {
            assert_eq!(settings.read("a", kept), None, "{kept}");
        }
        assert_eq!(settings.read("b", "4 four").as_deref(), Some("four"), "each has a version of its own");
        assert_eq!(settings.read("a", "6 two words").as_deref(), Some("two words"));
    }

    #[test]
    fn a_change_that_is_on_its_way_stands_above_what_is_read_meanwhile() {
        let settings = Settings::default();
        settings.change("a", "first".to_owned());
        settings.change("a", "second".to_owned());
        assert_eq!(settings.read("a", "7 of another"), None);
        settings.written("a", 1);
        assert_eq!(settings.unwritten("a"), Some((2, "second".to_owned())), "the second is not written yet");
        settings.written("a", 2);
        assert_eq!(settings.unwritten("a"), None);
        assert_eq!(settings.read("a", "8 second").as_deref(), Some("second"));
    }

    #[test]
    fn what_redis_has_lost_is_known_by_its_version() {
        let settings = Settings::default();
        for (name, kept) in [("a", "5 five"), ("b", "6 six"), ("c", "7 seven")] {
            settings.read(name, kept);
        }
        let kept = [("a", "5 five"), ("b", "2 old")].map(|(name, kept)| (name.to_owned(), kept.to_owned()));
        let lost = settings.lost_by(&kept.into());
        assert_eq!(lost, [("b".to_owned(), 6, "six".to_owned()), ("c".to_owned(), 7, "seven".to_owned())]);
    }
}
