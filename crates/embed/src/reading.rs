//! What is asked of a checker, and what it says.

use loopbreaker::Severity;

use crate::recent::Earlier;

/// One delta, to be compared with the last ones of its session.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Whose it is. Tenants never see each other.
    pub tenant: &'a str,
    /// Which of the tenant's sessions; empty for all of them together.
    pub session: &'a str,
    /// The newest words and tool calls.
    pub text: &'a str,
    /// What came of them.
    pub results: Results,
    /// Two texts above this similarity say the same.
    pub threshold: f64,
    /// What makes a loop of similar texts.
    pub rule: Rule,
    /// The caller's place in its trace, as the header `traceparent` writes it, for a sidecar to go on from.
    pub trace: Option<&'a str>,
}

/// What came back after a delta, as far as it can be compared with what came back before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Results {
    /// Nothing: there was no call, and nobody has replied.
    #[default]
    None,
    /// Nothing that tells anything: trouble that passes, an empty answer, a bare "ok".
    Unclear,
    /// Results, or a reply, with this hash.
    Gave(u64),
    /// Every call failed, in ways that have this hash.
    Failed(u64),
}

impl Results {
    /// Whether nothing new came.
    pub(crate) fn unchanged_since(self, before: Self) -> bool {
        self == before && self != Self::Unclear
    }

    /// Whether all of it failed.
    pub(crate) fn are_failures(self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Whether anything came that tells something.
    pub(crate) fn are_told(self) -> bool {
        matches!(self, Self::Gave(_) | Self::Failed(_))
    }
}

/// What makes a loop of similar texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rule {
    /// Two or more similar ones with the same names, numbers and paths and with unchanged results; one is a warning.
    /// Where a call fails in the way of an earlier one, it is enough that it names nothing that the earlier one did not
    /// name: to leave something out is no new idea.
    /// Texts that cannot be part of one are not embedded, so `max_similarity` leaves them out.
    #[default]
    Intent,
    /// An order in plain language: as for an intent, and two or more that ask for the same, whatever came of them.
    /// Whoever asks the same of the same for the third time did not get what it asked for.
    Order,
    /// One similar text is a loop, whatever it names: the literal rule of the design document. Everything is embedded.
    Literal,
}

/// What one more delta amounts to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The largest similarity to one of the last deltas that were compared; 0 when there is none.
    pub max_similarity: f64,
    /// How many of them are over the threshold.
    pub similar_count: usize,
    /// What that means by the question's rule.
    pub severity: Option<Severity>,
    /// How it was found out, or why it was not.
    pub how: How,
}

/// How a reading came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// By embeddings.
    Embedded,
    /// An equal text was there: no embedding was needed.
    Exact,
    /// No earlier text has enough of its words, or the same names: no embedding was needed.
    Prefiltered,
    /// It was not checked, since there was no text.
    NoText,
    /// It was not checked, on purpose.
    Skipped(Skipped),
    /// It could not be checked: something is broken.
    Degraded(Degraded),
}

/// Why a check was left out on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skipped {
    /// So many texts wait that the answer would come too late.
    Busy,
    /// The model is being loaded.
    Loading,
}

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Degraded {
    /// The answer was not there in time.
    Timeout,
    /// No sidecar can be reached, or all of them failed so often that they are left alone for a while.
    Unavailable,
    /// The sidecar's own store is away, or lost its index.
    Store,
    /// The model cannot be loaded or run.
    Model,
    /// The sidecar answered what cannot be.
    Garbage,
}

impl How {
    /// Every way, in the order in which they are counted.
    pub const ALL: [Self; 11] = [
        Self::Embedded,
        Self::Exact,
        Self::Prefiltered,
        Self::NoText,
        Self::Skipped(Skipped::Busy),
        Self::Skipped(Skipped::Loading),
        Self::Degraded(Degraded::Timeout),
        Self::Degraded(Degraded::Unavailable),
        Self::Degraded(Degraded::Store),
        Self::Degraded(Degraded::Model),
        Self::Degraded(Degraded::Garbage),
    ];

    /// One word for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Exact => "exact",
            Self::Prefiltered => "prefiltered",
            Self::NoText => "no_text",
            Self::Skipped(_) => "skipped",
            Self::Degraded(_) => "degraded",
        }
    }

    /// One word for why, where something was left out or is broken.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Skipped(Skipped::Busy) => Some("busy"),
            Self::Skipped(Skipped::Loading) => Some("loading"),
            Self::Degraded(Degraded::Timeout) => Some("timeout"),
            Self::Degraded(Degraded::Unavailable) => Some("unavailable"),
            Self::Degraded(Degraded::Store) => Some("store"),
            Self::Degraded(Degraded::Model) => Some("model"),
            Self::Degraded(Degraded::Garbage) => Some("garbage"),
            Self::Embedded | Self::Exact | Self::Prefiltered | Self::NoText => None,
        }
    }
}

impl Reading {
    /// Nothing was compared.
    pub(crate) const fn nothing(how: How) -> Self {
        Self { max_similarity: 0.0, similar_count: 0, severity: None, how }
    }

    /// From the similarity of each earlier delta, where it is known.
    pub(crate) fn from_pairs<'a>(
        question: &Question<'_>,
        how: How,
        pairs: impl IntoIterator<Item = (Option<&'a Earlier>, f64)>,
    ) -> Self {
        let mut votes = Votes::default();
        for (earlier, similarity) in pairs {
            votes.add(question.threshold, earlier, similarity);
        }
        votes.reading(question, how)
    }

    /// From numbers alone, when it is not known which earlier delta each of them is about: as many as are similar may
    /// be the ones with the same names. More than were heard here were said elsewhere.
    pub(crate) fn from_counts(
        question: &Question<'_>,
        max_similarity: f64,
        similar: usize,
        earlier: &[Earlier],
    ) -> Self {
        let same = earlier.iter().filter(|earlier| earlier.has_same_names());
        let unchanged = earlier.iter().filter(|earlier| earlier.is_unchanged()).count();
        let asked = same.clone().filter(|earlier| earlier.same_order).count();
        let unheard = similar.saturating_sub(earlier.len());
        let votes = Votes {
            max_similarity,
            similar,
            same_intent: (same.count() + unheard).min(similar),
            unchanged: unchanged.min(similar),
            asked: asked.min(similar),
        };
        votes.reading(question, How::Embedded)
    }
}

/// The last deltas, each with its vote.
#[derive(Debug, Default)]
struct Votes {
    max_similarity: f64,
    similar: usize,
    same_intent: usize,
    unchanged: usize,
    asked: usize,
}

impl Votes {
    fn add(&mut self, threshold: f64, earlier: Option<&Earlier>, similarity: f64) {
        self.max_similarity = self.max_similarity.max(similarity);
        if similarity <= threshold {
            return;
        }
        self.similar += 1;
        let Some(earlier) = earlier else {
            // It was said to another process: what it names is not known here, nor what came of it.
            self.same_intent += 1;
            return;
        };
        self.unchanged += usize::from(earlier.is_unchanged());
        if earlier.has_same_names() {
            self.same_intent += 1;
            self.asked += usize::from(earlier.same_order);
        }
    }

    fn reading(self, question: &Question<'_>, how: How) -> Reading {
        let is_loop = match question.rule {
            Rule::Literal => self.similar >= 1,
            Rule::Intent => self.unchanged >= 2,
            Rule::Order => self.unchanged >= 2 || self.asked >= 2,
        };
        let is_warning = question.rule != Rule::Literal && self.same_intent >= 1;
        let severity = is_loop.then_some(Severity::Loop).or(is_warning.then_some(Severity::Warning));
        Reading { max_similarity: self.max_similarity, similar_count: self.similar, severity, how }
    }
}
