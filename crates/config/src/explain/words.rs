//! Words that several sentences share.

use std::fmt::Display;
use std::time::Duration;

use loopbreaker::Action;

/// What an action does about a loop of the model.
pub(super) const fn effect_of(action: Action) -> &'static str {
    match action {
        Action::Allow => "nothing is done",
        Action::Warn => "the call passes and the answer's headers say so",
        Action::Hint => "the call passes and the model is told what it repeats",
        Action::Throttle => "the model is told, and the call is delayed",
        Action::Pause => "the call is held until an operator decides, and refused when none does",
        Action::Reject => "the call is refused",
    }
}

/// What an action does about requests that are too many: there is nothing to tell the model.
pub(super) const fn effect_on_requests(action: Action) -> &'static str {
    match action {
        Action::Throttle => "the call is delayed",
        other => effect_of(other),
    }
}

pub(super) fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// In the largest unit that divides it, as one would write it in the config.
pub(super) fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    match units.iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", millis / unit),
        None => format!("{millis}ms"),
    }
}

/// In the largest unit that divides it, like [`duration`].
pub(super) fn size(bytes: u64) -> String {
    let units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

/// A share from 0 to 1 as a percentage, without the noise of binary fractions.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", (share * 1e8).round() / 1e6)
}

/// `a`, `b` and `c`, each in backticks.
pub(super) fn names<T: Display>(names: &[T], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} {word} {last}", first.join(", ")),
        None => String::new(),
    }
}

pub(super) const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
