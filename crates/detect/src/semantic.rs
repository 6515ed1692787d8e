//! `semantic`: the same intent in other words. Takes vectors, computes none.

use std::collections::VecDeque;

use crate::config::SemanticConfig;
use crate::finding::Severity;
use crate::names::Names;
use crate::step::Timestamp;

/// What was said since the previous request, with its embedding.
#[derive(Debug, Clone, Copy)]
pub struct Delta<'a> {
    /// The text: the newest words and tool calls.
    pub text: &'a str,
    /// Its embedding, of any length and norm.
    pub vector: &'a [f32],
    /// A hash of the tool results that came with it; equal hashes are unchanged results.
    pub results: u64,
}

/// Compares each delta of a session with the last ones.
///
/// A similar pair that differs in numbers, paths, ids or quoted names is no loop by itself ("page 3", "page 4"). One
/// similar predecessor is a warning; two or more with unchanged results are a loop.
///
/// ```
/// use loopbreaker::{Delta, Semantic, SemanticConfig, Severity, Timestamp};
///
/// let mut semantic = Semantic::default();
/// let config = SemanticConfig::default();
/// let mut say = |text, vector: &[f32]| {
///     semantic.observe(&Delta { text, vector, results: 7 }, &config, Timestamp::from_secs(0)).severity
/// };
/// assert_eq!(say("let me look at the logs", &[1.0, 0.1]), None);
/// assert_eq!(say("I should check the logs", &[1.0, 0.12]), Some(Severity::Warning));
/// assert_eq!(say("now reading the logs", &[1.0, 0.08]), Some(Severity::Loop));
/// assert_eq!(say("the fix is in place", &[-1.0, 0.5]), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Semantic {
    history: VecDeque<Heard>,
}

#[derive(Debug, Clone)]
struct Heard {
    vector: Box<[f32]>,
    names: Names,
    results: u64,
    at: Timestamp,
}

/// What one more delta amounts to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SemanticReading {
    /// The largest similarity to one of the last deltas; 0 when there is none.
    pub max_similarity: f64,
    /// How many of the last deltas are over the threshold.
    pub similar_count: usize,
    /// What that means, with names and results taken into account.
    pub severity: Option<Severity>,
}

impl Semantic {
    /// Takes a delta in. What is older than the time to live is forgotten first.
    pub fn observe(&mut self, delta: &Delta<'_>, config: &SemanticConfig, now: Timestamp) -> SemanticReading {
        while self.history.front().is_some_and(|heard| now.millis_since(heard.at) >= config.ttl_millis) {
            self.history.pop_front();
        }
        let names = Names::of(delta.text);
        let mut reading = SemanticReading { max_similarity: 0.0, similar_count: 0, severity: None };
        let (mut same_intent, mut unchanged) = (0, 0);
        for heard in &self.history {
            let similarity = similarity(&heard.vector, delta.vector);
            reading.max_similarity = reading.max_similarity.max(similarity);
            if similarity > config.threshold {
                reading.similar_count += 1;
                if heard.names == names {
                    same_intent += 1;
                    unchanged += usize::from(heard.results == delta.results);
                }
            }
        }
        reading.severity = match (same_intent, unchanged) {
            (_, 2..) => Some(Severity::Loop),
            (1.., _) => Some(Severity::Warning),
            _ => None,
        };
        while self.history.len() >= config.size.max(1) as usize {
            self.history.pop_front();
        }
        let heard = Heard { vector: delta.vector.into(), names, results: delta.results, at: now };
        self.history.push_back(heard);
        reading
    }
}

/// From 1 (the same direction) to 0 (the opposite one): 1 − cosine distance / 2. Vectors of different lengths, and
/// ones without a direction, are not similar to anything.
///
/// ```
/// use loopbreaker::similarity;
/// assert_eq!(similarity(&[1.0, 0.0], &[2.0, 0.0]), 1.0);
/// assert_eq!(similarity(&[1.0, 0.0], &[0.0, 1.0]), 0.5);
/// assert_eq!(similarity(&[1.0, 0.0], &[-1.0, 0.0]), 0.0);
/// ```
pub fn similarity(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return 0.0;
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if !norms.is_normal() {
        return 0.0;
    }
    let distance = 1.0 - dot(a, b) / norms;
    (1.0 - distance / 2.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Delta, Semantic, SemanticReading, similarity};
    use crate::{SemanticConfig, Severity, Timestamp};

    fn say(
        semantic: &mut Semantic,
        text: &str,
        vector: &[f32],
        results: u64,
        second: u64,
    ) -> SemanticReading {
        let delta = Delta { text, vector, results };
        semantic.observe(&delta, &SemanticConfig::default(), Timestamp::from_secs(second))
    }

    /// A vector at this cosine distance from `[1, 0]`.
    fn at_distance(distance: f32) -> [f32; 2] {
        let cosine = 1.0 - distance;
        [cosine, (1.0 - cosine * cosine).sqrt()]
    }

    #[test]
    fn similarity_is_one_minus_half_the_distance() {
        for (distance, expected) in [(0.0, 1.0), (0.1, 0.95), (1.0, 0.5), (2.0, 0.0)] {
            assert!((similarity(&[1.0, 0.0], &at_distance(distance)) - expected).abs() < 1e-6, "{distance}");
        }
    }

    #[test]
    fn vectors_without_a_direction_are_like_nothing() {
        for other in [&[0.0, 0.0][..], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0], &[1.0], &[]] {
            assert!(similarity(&[1.0, 0.0], other).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn another_page_is_another_thing() {
        let mut semantic = Semantic::default();
        for page in 1..6 {
            let reading = say(&mut semantic, &format!("open page {page} of the report"), &[1.0, 0.0], 1, 0);
            assert_eq!(reading.severity, None);
            assert_eq!(reading.similar_count, page - 1);
        }
    }

    #[test]
    fn quoted_names_and_paths_tell_apart() {
        let mut semantic = Semantic::default();
        for text in ["read \"alpha\"", "read \"beta\"", "read src/a", "read src/b"] {
            assert_eq!(say(&mut semantic, text, &[1.0, 0.0], 1, 0).severity, None, "{text}");
        }
    }

    #[test]
    fn ids_tell_apart() {
        let mut semantic = Semantic::default();
        for text in ["ask @ada", "ask @bob", "open #parser", "open #lexer", "read user_a", "read user_b"] {
            assert_eq!(say(&mut semantic, text, &[1.0, 0.0], 1, 0).severity, None, "{text}");
        }
    }

    #[test]
    fn a_similarity_just_at_the_threshold_is_not_above_it() {
        let config = SemanticConfig { threshold: 0.5, ..SemanticConfig::default() };
        let mut semantic = Semantic::default();
        let mut count = |vector: &[f32]| {
            let delta = Delta { text: "go on", vector, results: 1 };
            semantic.observe(&delta, &config, Timestamp::from_secs(0)).similar_count
        };
        assert_eq!((count(&[1.0, 0.0]), count(&[0.0, 1.0]), count(&[1.0, 0.1])), (0, 0, 2));
    }

    #[test]
    fn a_threshold_is_above_nothing_and_no_more_than_all() {
        let accepted = |threshold| SemanticConfig::new(5, 1_000, threshold).is_ok();
        assert!(accepted(0.01) && accepted(1.0));
        assert!(!accepted(0.0) && !accepted(1.01) && !accepted(f64::NAN));
    }

    #[test]
    fn the_second_like_text_is_a_warning_and_the_third_a_loop() {
        let mut semantic = Semantic::default();
        let severities = [(); 3].map(|()| say(&mut semantic, "try again", &[1.0, 0.0], 1, 0).severity);
        assert_eq!(severities, [None, Some(Severity::Warning), Some(Severity::Loop)]);
    }

    #[test]
    fn changed_results_keep_it_a_warning() {
        let mut semantic = Semantic::default();
        for results in 0..5 {
            let reading = say(&mut semantic, "try again", &[1.0, 0.0], results, 0);
            assert_ne!(reading.severity, Some(Severity::Loop));
        }
    }

    #[test]
    fn only_the_last_five_are_compared() {
        let mut semantic = Semantic::default();
        say(&mut semantic, "first", &[1.0, 0.0], 1, 0);
        for _ in 0..4 {
            say(&mut semantic, "other", &[0.0, 1.0], 1, 0);
        }
        assert!(say(&mut semantic, "first", &[1.0, 0.0], 1, 0).max_similarity > 0.99);
        let mut semantic = Semantic::default();
        say(&mut semantic, "first", &[1.0, 0.0], 1, 0);
        for _ in 0..5 {
            say(&mut semantic, "other", &[0.0, 1.0], 1, 0);
        }
        assert!(say(&mut semantic, "first", &[1.0, 0.0], 1, 0).max_similarity < 0.6);
    }

    #[test]
    fn what_is_too_old_is_forgotten() {
        let mut semantic = Semantic::default();
        say(&mut semantic, "first", &[1.0, 0.0], 1, 0);
        assert_eq!(say(&mut semantic, "first", &[1.0, 0.0], 1, 3_600).similar_count, 0);
    }

    proptest! {
        #[test]
        fn similarity_stays_between_nothing_and_all(a in prop::collection::vec(any::<f32>(), 0..8), b in prop::collection::vec(any::<f32>(), 0..8)) {
            let value = similarity(&a, &b);
            prop_assert!((0.0..=1.0).contains(&value));
        }

        #[test]
        fn arbitrary_texts_never_panic(text in ".{0,60}") {
            say(&mut Semantic::default(), &text, &[1.0], 0, 0);
        }
    }
}
