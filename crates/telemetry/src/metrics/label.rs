//! Labels: closed sets of names, so that the number of series is known when the program is built.

use loopbreaker::{Action, Kind, Severity};

use crate::part::Part;
use crate::record::{Dialect, Mode, TenantClass};

/// A value that a label can have.
pub(crate) trait Label: Copy + Sized + 'static {
    /// Every value, each at its index.
    const ALL: &'static [Self];
    /// How many there are.
    const COUNT: usize = Self::ALL.len();

    /// Its place among all.
    fn index(self) -> usize;

    /// Its name on the wire.
    fn name(self) -> &'static str;
}

/// Makes a label of an enum: its values in the order of their declaration, and the names that it has anyway. The
/// `match` of the names is exhaustive in each enum, and the test below holds the lists against it.
macro_rules! label {
    ($type:ty: $($value:ident),+) => {
        impl Label for $type {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn index(self) -> usize {
                // Every value is named here, so that a new one does not compile until it has its counters.
                match self {
                    $(Self::$value => Self::$value as usize,)+
                }
            }

            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

label!(Action: Allow, Warn, Hint, Throttle, Pause, Reject);
label!(Severity: Warning, Loop);
label!(Kind: Repeat, FailingRepeat, Cycle, Churn, Oscillation, Sweep, StalePoll, Monologue, Chant, UnknownTool, Retry,
    IdenticalRequest, Semantic);
label!(Mode: Enforce, Shadow);
label!(Dialect: Chat, Responses, Anthropic, Gemini, Other);
label!(TenantClass: Anonymous, Key, Named);
label!(Part: Body, Hint, Detector, Semantic, State, Store, DataDir, Config, Log, Otlp);
label!(TokenKind: Input, CacheRead, CacheWrite, Output, Reasoning);
label!(UpstreamError: Connect, Tls, Timeout, Protocol, Broken, ServerError, BreakerOpen);
label!(ReloadResult: Loaded, Refused);
label!(Resume: Hit, Miss);
label!(CacheUse: Hit, Miss, Stored);
label!(SpanResult: Exported, Failed, Dropped);
label!(Unit: Requests, Tokens, Usd);

/// What tokens are priced as, in the order of the fields of [`Tokens`](crate::Tokens).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Input,
    CacheRead,
    CacheWrite,
    Output,
    Reasoning,
}

impl TokenKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::CacheRead => "cache_read",
            Self::CacheWrite => "cache_write",
            Self::Output => "output",
            Self::Reasoning => "reasoning",
        }
    }
}

/// Why a provider gave no proper answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamError {
    /// No connection came about.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// It took too long.
    Timeout,
    /// The answer was no HTTP.
    Protocol,
    /// The connection ended in the middle of the answer.
    Broken,
    /// It answered 5xx.
    ServerError,
    /// It was not asked: its circuit breaker was open.
    BreakerOpen,
}

impl UpstreamError {
    /// The reason's name in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Broken => "broken",
            Self::ServerError => "server_error",
            Self::BreakerOpen => "breaker_open",
        }
    }
}

/// What budgets are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests.
    Requests,
    /// Tokens.
    Tokens,
    /// US dollars, counted in millionths.
    Usd,
}

impl Unit {
    /// The unit's name in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Usd => "usd",
        }
    }
}

/// How loading the config again ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadResult {
    /// The new one is in force.
    Loaded,
    /// It has mistakes, and the old one stays.
    Refused,
}

impl ReloadResult {
    /// The result's name in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Refused => "refused",
        }
    }
}

/// Whether a transcript was taken up where the session's last request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Only what is new was read.
    Hit,
    /// The whole body was read.
    Miss,
}

impl Resume {
    /// The result's name in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
        }
    }
}

/// What the result cache did for a request that it may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheUse {
    /// An answer was given again.
    Hit,
    /// None was there.
    Miss,
    /// An answer was kept.
    Stored,
}

impl CacheUse {
    /// The result's name in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Stored => "stored",
        }
    }
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanResult {
    /// The collector took it.
    Exported,
    /// The collector refused it, or was not reached in time.
    Failed,
    /// The queue was full.
    Dropped,
}

impl SpanResult {
    /// The result's name in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exported => "exported",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands_at_its_index<L: Label>() {
        for (at, label) in L::ALL.iter().enumerate() {
            assert_eq!(label.index(), at, "{}", label.name());
        }
        let mut names: Vec<_> = L::ALL.iter().map(|label| label.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), L::COUNT, "two values have one name");
    }

    #[test]
    fn every_value_stands_at_its_index_and_has_a_name_of_its_own() {
        stands_at_its_index::<Action>();
        stands_at_its_index::<Severity>();
        stands_at_its_index::<Kind>();
        stands_at_its_index::<Mode>();
        stands_at_its_index::<Dialect>();
        stands_at_its_index::<TenantClass>();
        stands_at_its_index::<Part>();
        stands_at_its_index::<TokenKind>();
        stands_at_its_index::<UpstreamError>();
        stands_at_its_index::<ReloadResult>();
        stands_at_its_index::<Resume>();
        stands_at_its_index::<CacheUse>();
        stands_at_its_index::<SpanResult>();
        assert_eq!(Part::ALL, *<Part as Label>::ALL, "the two lists of parts differ");
    }
}
