//! How long a rule waits until what it sees may be refused.
//!
//! Most rules see that the same thing happened again. Some only infer that nothing new can come of it, from likeness or
//! from answers that tell little. A hint that was not needed costs one message, a refusal that was not needed costs the
//! run: so what is inferred is told at once, and refused only when it has gone on twice as long as it took to be told.

/// Rules that infer, and from how many occurrences on they are as sure as the others.
const INFERRED: [(&str, usize); 10] = [
    // The questions are alike.
    ("same_question", 8),
    ("same_change", 8),
    // Something was left out of the answers.
    ("framed", 8),
    // One number after the other is tried.
    ("counting_on", 20),
    // Nothing is known of what came of it.
    ("move", 12),
    ("blind_cycle", 12),
    ("put_aside", 8),
    ("aside_row", 10),
    ("all_aside", 10),
    // What was done in between may have changed something that nobody has looked at.
    ("standstill", 16),
];

/// Whether so many occurrences that this rule saw are enough to refuse the next one.
pub(crate) fn may_refuse(rule: &str, count: usize) -> bool {
    INFERRED.iter().all(|(name, enough)| *name != rule || *enough <= count)
}

#[cfg(test)]
mod tests {
    use super::{INFERRED, may_refuse};
    use crate::redundancy::carried::RULES;

    #[test]
    fn every_rule_that_waits_is_a_rule() {
        for (name, _) in INFERRED {
            assert!(RULES.contains(&name), "{name}");
        }
    }

    #[test]
    fn what_is_inferred_is_refused_later_than_what_is_seen() {
        assert!(may_refuse("repeat", 3));
        assert!(!may_refuse("same_question", 7));
        assert!(may_refuse("same_question", 8));
    }
}
