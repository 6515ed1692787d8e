//! `entropy`: how many of the last decisions differ.

use std::collections::VecDeque;

use crate::config::EntropyConfig;
use crate::fingerprint::Fingerprint;
use crate::step::Status;

/// One decision of an agent, as a decision log has it.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// What it wants.
    pub intent: &'a str,
    /// The tool that it calls; empty for none.
    pub tool_call: &'a str,
    /// How the call ended.
    pub status: Status,
    /// The tool's input as JSON text.
    pub tool_input: Option<&'a str>,
    /// The score that the agent reported of itself.
    pub reported: Option<f64>,
}

/// The uniqueness ratio of one session's last decisions.
///
/// ```
/// use loopbreaker::{Decision, Entropy, EntropyConfig, EntropyEvent, Status};
///
/// let mut entropy = Entropy::default();
/// let decision = Decision {
///     intent: "build",
///     tool_call: "make",
///     status: Status::Failure,
///     tool_input: None,
///     reported: None,
/// };
/// let config = EntropyConfig::default();
/// let scores: Vec<f64> = (0..4).map(|_| entropy.observe(&decision, &config).score).collect();
/// assert_eq!(scores, [1.0, 0.5, 0.3333, 0.25]);
/// let fifth = entropy.observe(&decision, &config);
/// let Some(EntropyEvent::Alert(alert)) = fifth.event else { panic!("0.2 is below 0.25") };
/// assert_eq!((alert.entropy_score, alert.occurrence_count), (0.2, 5));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Entropy {
    window: VecDeque<Entry>,
    looping: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    tuple: Fingerprint,
    pattern: RepeatedPattern,
}

/// What one more decision amounts to.
#[derive(Debug, Clone, PartialEq)]
pub struct EntropyReading {
    /// Different decisions as a part of all in the window, to four decimals.
    pub score: f64,
    /// What that means.
    pub level: EntropyLevel,
    /// What changed with this decision.
    pub event: Option<EntropyEvent>,
    /// The agent's own score, when it is far from the computed one.
    pub discrepancy: Option<f64>,
    /// While the level is `loop`: the open alert as of now.
    pub open: Option<EntropyAlert>,
}

/// What a score means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntropyLevel {
    /// The agent does different things.
    Normal,
    /// It repeats itself.
    Warning,
    /// It does nothing else.
    Loop,
}

impl EntropyLevel {
    /// The level's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Warning => "warning",
            Self::Loop => "loop",
        }
    }
}

/// A session entered or left `loop`.
#[derive(Debug, Clone, PartialEq)]
pub enum EntropyEvent {
    /// It entered.
    Alert(EntropyAlert),
    /// It left, with this score.
    Recovered(f64),
}

/// The part of an `entropy_alert` event that the detector knows; session and agent are the caller's.
#[derive(Debug, Clone, PartialEq)]
pub struct EntropyAlert {
    /// The score.
    pub entropy_score: f64,
    /// How many decisions are looked at.
    pub window_size: u32,
    /// The decision that stands most often in the window.
    pub repeated_pattern: RepeatedPattern,
    /// How often it stands there.
    pub occurrence_count: u32,
}

/// The decision that repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedPattern {
    /// What the agent wants.
    pub intent: String,
    /// The tool that it calls.
    pub tool_call: String,
    /// How the call ended.
    pub action_status: Status,
}

impl Entropy {
    /// A difference between the agent's own score and the computed one that is worth an event.
    pub const DISCREPANCY: f64 = 0.3;

    /// Takes a decision in. The settings may differ from call to call: a change takes effect on the next decision.
    pub fn observe(&mut self, decision: &Decision<'_>, config: &EntropyConfig) -> EntropyReading {
        self.window.push_back(Entry::of(decision, config));
        while self.window.len() > config.window_size.max(1) as usize {
            self.window.pop_front();
        }
        let score = self.score();
        let level = if score < config.loop_below {
            EntropyLevel::Loop
        } else if score <= config.warn_up_to {
            EntropyLevel::Warning
        } else {
            EntropyLevel::Normal
        };
        let open = (level == EntropyLevel::Loop).then(|| self.alert(score, config)).flatten();
        let was_looping = std::mem::replace(&mut self.looping, level == EntropyLevel::Loop);
        let event = match (was_looping, &open) {
            (false, Some(alert)) => Some(EntropyEvent::Alert(alert.clone())),
            (true, None) => Some(EntropyEvent::Recovered(score)),
            _ => None,
        };
        // Scores have four decimals, so 1.0 and 0.7 differ by 0.3 and not by a hair more.
        let far_off = |reported: &f64| four_decimals((reported - score).abs()) > Self::DISCREPANCY;
        let discrepancy = decision.reported.filter(far_off);
        EntropyReading { score, level, event, discrepancy, open }
    }

    fn score(&self) -> f64 {
        let first_of_its_kind =
            |index: &usize| !self.window.range(..index).any(|entry| entry.tuple == self.window[*index].tuple);
        let unique = (0..self.window.len()).filter(first_of_its_kind).count();
        four_decimals(unique as f64 / self.window.len() as f64)
    }

    fn alert(&self, score: f64, config: &EntropyConfig) -> Option<EntropyAlert> {
        let count = |entry: &Entry| self.window.iter().filter(|other| other.tuple == entry.tuple).count();
        // Of equally frequent ones, the last.
        let repeated = self.window.iter().max_by_key(|entry| count(entry))?;
        Some(EntropyAlert {
            entropy_score: score,
            window_size: config.window_size,
            repeated_pattern: repeated.pattern.clone(),
            occurrence_count: count(repeated) as u32,
        })
    }
}

impl Entry {
    /// An intent is shown in alerts; nobody reads more of it there.
    const MAX_TEXT: usize = 512;

    fn of(decision: &Decision<'_>, config: &EntropyConfig) -> Self {
        let input = decision.tool_input.filter(|_| config.include_input);
        let tool = Fingerprint::of_call(decision.tool_call, input);
        let intent = Fingerprint::of_bytes(b"intent", decision.intent.as_bytes());
        let parts = [tool.as_bytes(), intent.as_bytes(), decision.status.as_str().as_bytes()].concat();
        let pattern = RepeatedPattern {
            intent: start_of(decision.intent, Self::MAX_TEXT),
            tool_call: start_of(decision.tool_call, Self::MAX_TEXT),
            action_status: decision.status,
        };
        Self { tuple: Fingerprint::of_bytes(b"decision", &parts), pattern }
    }
}

fn four_decimals(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

fn start_of(text: &str, max: usize) -> String {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests;
