//! `sentinel`: the same tool call again, whatever it answers.

use std::sync::Arc;

use crate::config::{SentinelConfig, SentinelLimit, best_match};
use crate::fingerprint::Fingerprint;
use crate::words::hash_bytes;

/// Blocks a call that stands too often among the last ones.
///
/// Per session a fixed ring of fingerprints; a blocked call is not recorded, so that a changed call passes at once
/// and the alarm never feeds itself.
///
/// ```
/// use loopbreaker::{Sentinel, SentinelConfig};
///
/// let mut sentinel = Sentinel::new(&SentinelConfig::default());
/// let args = Some(r#"{"q":"rust"}"#);
/// for _ in 0..3 {
///     assert!(sentinel.check("search", args).is_ok());
/// }
/// let block = sentinel.check("search", args).unwrap_err();
/// assert_eq!((block.count, block.threshold), (3, 3));
/// assert!(block.feedback("search").contains("search"));
/// assert!(sentinel.check("search", Some(r#"{"q":"rust loops"}"#)).is_ok());
/// ```
#[derive(Debug)]
pub struct Sentinel {
    config: Arc<SentinelConfig>,
    whole: Rings,
    /// Rings of batch items, the one that was used last at the back.
    scopes: Vec<(u64, Rings)>,
}

/// Why a call was blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelBlock {
    /// How often the call stands in the ring.
    pub count: u32,
    /// How often it may.
    pub threshold: u32,
    /// How many calls the ring remembers.
    pub window_size: u32,
    /// How often this call has been blocked, this time included.
    pub strikes: u32,
    /// Whether the tool has a limit of its own.
    pub own_limit: bool,
    /// Why the tool has a limit of its own.
    pub reason: Option<String>,
}

impl SentinelBlock {
    /// What to tell the model: never a silent abort.
    pub fn feedback(&self, tool: &str) -> String {
        let mut text = format!(
            "Loopbreaker: this exact call of `{tool}` was already made {} times within the last {} calls, so it was not run again.",
            self.count, self.window_size
        );
        if let Some(reason) = &self.reason {
            text.push_str(" Reason: ");
            text.push_str(reason);
            if !reason.ends_with('.') {
                text.push('.');
            }
        }
        text.push_str(
            " Its answer will not change by asking again: use the result you have, change the arguments, try another tool, or say that you are stuck.",
        );
        text
    }
}

impl Sentinel {
    /// The most batch items that one session keeps apart; the one that was used longest ago goes first.
    pub const MAX_SCOPES: usize = 256;

    /// A sentinel for one session.
    pub fn new(config: &SentinelConfig) -> Self {
        Self::shared(Arc::new(config.clone()))
    }

    /// A sentinel whose settings are shared with other sessions.
    pub fn shared(config: Arc<SentinelConfig>) -> Self {
        Self { config, whole: Rings::default(), scopes: Vec::new() }
    }

    /// Admits and records a call, or blocks it and counts a strike.
    pub fn check(&mut self, tool: &str, args: Option<&str>) -> Result<(), SentinelBlock> {
        self.whole.check(&self.config, tool, Fingerprint::of_call(tool, args))
    }

    /// What [`check`](Self::check) would answer, without recording anything.
    pub fn peek(&self, tool: &str, args: Option<&str>) -> Result<(), SentinelBlock> {
        self.whole.peek(&self.config, tool, &Fingerprint::of_call(tool, args))
    }

    /// The sentinel of one batch item: its calls are counted apart from all others.
    ///
    /// ```
    /// use loopbreaker::{Sentinel, SentinelConfig};
    /// let mut sentinel = Sentinel::new(&SentinelConfig::default());
    /// for item in ["item-1", "item-2", "item-3", "item-4"] {
    ///     assert!(sentinel.scope(item).check("convert", None).is_ok());
    /// }
    /// ```
    pub fn scope(&mut self, name: &str) -> SentinelScope<'_> {
        let key = hash_bytes(name.as_bytes());
        if let Some(at) = self.scopes.iter().position(|(scope, _)| *scope == key) {
            self.scopes[at..].rotate_left(1);
        } else {
            if self.scopes.len() == Self::MAX_SCOPES {
                self.scopes.remove(0);
            }
            self.scopes.push((key, Rings::default()));
        }
        let last = self.scopes.len() - 1;
        SentinelScope { config: &self.config, rings: &mut self.scopes[last].1 }
    }

    /// Forgets everything: a new user message, or a new session.
    pub fn reset(&mut self) {
        self.whole = Rings::default();
        self.scopes.clear();
    }

    /// Forgets one batch item.
    pub fn reset_scope(&mut self, name: &str) {
        let key = hash_bytes(name.as_bytes());
        self.scopes.retain(|(scope, _)| *scope != key);
    }

    /// How often calls were blocked in this session, outside of scopes.
    pub fn strikes(&self) -> u32 {
        self.whole.total_strikes
    }

    pub(crate) fn rings(&mut self, scope: Option<&str>) -> SentinelScope<'_> {
        match scope {
            Some(name) => self.scope(name),
            None => SentinelScope { config: &self.config, rings: &mut self.whole },
        }
    }
}

/// The sentinel of one batch item; see [`Sentinel::scope`].
#[derive(Debug)]
pub struct SentinelScope<'a> {
    config: &'a SentinelConfig,
    rings: &'a mut Rings,
}

impl SentinelScope<'_> {
    /// Admits and records a call, or blocks it and counts a strike.
    pub fn check(&mut self, tool: &str, args: Option<&str>) -> Result<(), SentinelBlock> {
        self.check_call(tool, Fingerprint::of_call(tool, args))
    }

    /// What [`check`](Self::check) would answer, without recording anything.
    pub fn peek(&self, tool: &str, args: Option<&str>) -> Result<(), SentinelBlock> {
        self.rings.peek(self.config, tool, &Fingerprint::of_call(tool, args))
    }

    pub(crate) fn check_call(&mut self, tool: &str, call: Fingerprint) -> Result<(), SentinelBlock> {
        self.rings.check(self.config, tool, call)
    }

    pub(crate) fn peek_call(&self, tool: &str, call: &Fingerprint) -> Result<(), SentinelBlock> {
        self.rings.peek(self.config, tool, call)
    }

    /// Records a call that was let through in spite of a hit.
    pub(crate) fn admit(&mut self, tool: &str, call: Fingerprint) {
        self.rings.admit(self.config, tool, call);
    }

    /// Counts a blocked call, and says how often it has been blocked.
    pub(crate) fn strike(&mut self, call: Fingerprint) -> u32 {
        self.rings.strike(call)
    }
}

/// The rings of one session or scope: one for all tools, and one for each limit of a tool's own.
#[derive(Debug, Default)]
struct Rings {
    all: Ring,
    own: Vec<(usize, Ring)>,
    /// The last calls that were blocked, and how often.
    struck: Vec<(Fingerprint, u32)>,
    total_strikes: u32,
}

/// A fixed ring of fingerprints.
#[derive(Debug, Default)]
struct Ring {
    calls: Box<[Fingerprint]>,
    next: u32,
    len: u32,
}

impl Rings {
    /// Blocked calls that are told apart; of older ones only the sum is kept.
    const MAX_STRUCK: usize = 8;

    fn check(&mut self, config: &SentinelConfig, tool: &str, call: Fingerprint) -> Result<(), SentinelBlock> {
        match self.peek(config, tool, &call) {
            Ok(()) => {
                self.admit(config, tool, call);
                Ok(())
            }
            Err(block) => Err(SentinelBlock { strikes: self.strike(call), ..block }),
        }
    }

    fn peek(&self, config: &SentinelConfig, tool: &str, call: &Fingerprint) -> Result<(), SentinelBlock> {
        let Some(place) = Place::of(config, tool) else { return Ok(()) };
        let ring = match place.own {
            Some(own) => self.own.iter().find(|(index, _)| *index == own).map(|(_, ring)| ring),
            None => Some(&self.all),
        };
        let count = ring.map_or(0, |ring| ring.count(call));
        if count < place.limit.threshold() {
            return Ok(());
        }
        let strikes =
            self.struck.iter().find(|(struck, _)| struck == call).map_or(0, |(_, strikes)| *strikes);
        Err(SentinelBlock {
            count,
            threshold: place.limit.threshold(),
            window_size: place.limit.window_size(),
            strikes: strikes + 1,
            own_limit: place.own.is_some(),
            reason: place.limit.reason().map(str::to_owned),
        })
    }

    fn admit(&mut self, config: &SentinelConfig, tool: &str, call: Fingerprint) {
        let Some(place) = Place::of(config, tool) else { return };
        let ring = match place.own {
            None => &mut self.all,
            Some(own) => {
                let at = self.own.iter().position(|(index, _)| *index == own).unwrap_or_else(|| {
                    self.own.push((own, Ring::default()));
                    self.own.len() - 1
                });
                &mut self.own[at].1
            }
        };
        ring.push(call, place.limit.window_size());
    }

    fn strike(&mut self, call: Fingerprint) -> u32 {
        self.total_strikes = self.total_strikes.saturating_add(1);
        if let Some((_, strikes)) = self.struck.iter_mut().find(|(struck, _)| *struck == call) {
            *strikes = strikes.saturating_add(1);
            return *strikes;
        }
        if self.struck.len() == Self::MAX_STRUCK {
            self.struck.remove(0);
        }
        self.struck.push((call, 1));
        1
    }
}

impl Ring {
    /// For the usual ten to fifty entries a scan is faster than any map.
    fn count(&self, call: &Fingerprint) -> u32 {
        self.calls[..self.len as usize].iter().filter(|entry| *entry == call).count() as u32
    }

    fn push(&mut self, call: Fingerprint, window_size: u32) {
        if self.calls.is_empty() {
            self.calls = vec![Fingerprint::default(); window_size as usize].into();
        }
        self.calls[self.next as usize] = call;
        self.next = (self.next + 1) % window_size;
        self.len = (self.len + 1).min(window_size);
    }
}

/// Where a tool's calls are counted; `None` when the tool is not guarded.
struct Place<'a> {
    limit: &'a SentinelLimit,
    own: Option<usize>,
}

impl<'a> Place<'a> {
    fn of(config: &'a SentinelConfig, tool: &str) -> Option<Self> {
        if config.bypass.iter().any(|pattern| pattern.matches(tool)) {
            return None;
        }
        let Some(entry) = best_match(&config.overrides, tool) else {
            return Some(Self { limit: &config.default, own: None });
        };
        let own = config.overrides.iter().position(|other| std::ptr::eq(other, entry));
        Some(Self { limit: &entry.1, own })
    }
}

#[cfg(test)]
mod tests;
