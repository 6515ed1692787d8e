//! The `RateLimit` and `RateLimit-Policy` headers.

use std::fmt::Write;

use crate::limit::{Limit, Quantity, Standing, Window};

/// A rule, its limit, and how its key stands: one member of the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleStanding<'a> {
    /// The rule's id.
    pub rule: &'a str,
    /// What it allows.
    pub limit: Limit,
    /// How its key stands.
    pub standing: Standing,
}

/// The value of the `RateLimit` header: `r` is what is left, `t` in how many seconds there is more.
///
/// Money is in US cents, rounded down. A limit of a whole session has no `t`, for no time makes it larger.
///
/// ```
/// use loopbreaker_budget::{Limit, Quantity, RuleStanding, Standing, Window, rate_limit, rate_limit_policy};
///
/// let rpm = RuleStanding {
///     rule: "rpm",
///     limit: Limit { quantity: Quantity::Requests, amount: 600, window: Window::Seconds(60) },
///     standing: Standing { used: 600, amount: 600, remaining: 0, reset_seconds: 30 },
/// };
/// let budget = RuleStanding {
///     rule: "budget",
///     limit: Limit { quantity: Quantity::Money, amount: 5_000_000, window: Window::Session },
///     standing: Standing { used: 1_234_567, amount: 5_000_000, remaining: 3_765_433, reset_seconds: 0 },
/// };
/// assert_eq!(rate_limit(&[rpm, budget]), r#""rpm";r=0;t=30, "budget";r=376"#);
/// assert_eq!(rate_limit_policy(&[rpm, budget]), r#""rpm";q=600;w=60, "budget";q=500"#);
/// ```
pub fn rate_limit(rules: &[RuleStanding<'_>]) -> String {
    members(rules, |value, rule| {
        parameter(value, 'r', in_header_units(rule.limit.quantity, rule.standing.remaining));
        if let Window::Seconds(_) = rule.limit.window {
            parameter(value, 't', rule.standing.reset_seconds);
        }
    })
}

/// The value of the `RateLimit-Policy` header: `q` is what is allowed, `w` in how many seconds.
///
/// Money is in US cents, rounded down. A limit of a whole session has no `w`.
pub fn rate_limit_policy(rules: &[RuleStanding<'_>]) -> String {
    members(rules, |value, rule| {
        parameter(value, 'q', in_header_units(rule.limit.quantity, rule.limit.amount));
        if let Window::Seconds(seconds) = rule.limit.window {
            parameter(value, 'w', u64::from(seconds));
        }
    })
}

fn members(rules: &[RuleStanding<'_>], parameters: impl Fn(&mut String, &RuleStanding<'_>)) -> String {
    let mut value = String::new();
    for rule in rules {
        if !value.is_empty() {
            value.push_str(", ");
        }
        quote(&mut value, rule.rule);
        parameters(&mut value, rule);
    }
    value
}

/// A string of RFC 9651. It may hold printable ASCII only, so `?` stands for everything else.
fn quote(value: &mut String, text: &str) {
    value.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => value.extend(['\\', character]),
            ' '..='~' => value.push(character),
            _ => value.push('?'),
        }
    }
    value.push('"');
}

fn parameter(value: &mut String, name: char, number: u64) {
    /// An integer of RFC 9651 has at most fifteen digits.
    const LARGEST: u64 = 999_999_999_999_999;
    // Writing to a string cannot fail.
    write!(value, ";{name}={}", number.min(LARGEST)).unwrap_or_default();
}

const fn in_header_units(quantity: Quantity, amount: u64) -> u64 {
    const MICROS_PER_CENT: u64 = 10_000;
    match quantity {
        Quantity::Requests | Quantity::Tokens => amount,
        Quantity::Money => amount / MICROS_PER_CENT,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{RuleStanding, rate_limit, rate_limit_policy};
    use crate::{Limit, Quantity, Standing, Window};

    fn rule(rule: &str, amount: u64) -> RuleStanding<'_> {
        RuleStanding {
            rule,
            limit: Limit { quantity: Quantity::Requests, amount, window: Window::Seconds(60) },
            standing: Standing { used: 1, amount, remaining: amount - 1, reset_seconds: 7 },
        }
    }

    #[test]
    fn a_rule_id_is_escaped() {
        assert_eq!(rate_limit(&[rule(r#"a"b\c"#, 3)]), r#""a\"b\\c";r=2;t=7"#);
        assert_eq!(rate_limit_policy(&[rule("größe\r\nx: 1", 3)]), r#""gr??e??x: 1";q=3;w=60"#);
    }

    #[test]
    fn money_is_in_whole_cents_and_a_session_has_no_end() {
        let limit = Limit { quantity: Quantity::Money, amount: 1_500_000, window: Window::Session };
        let standing = Standing { used: 1_490_001, amount: 1_500_000, remaining: 9_999, reset_seconds: 0 };
        let rules = [RuleStanding { rule: "budget", limit, standing }];
        assert_eq!(rate_limit(&rules), r#""budget";r=0"#);
        assert_eq!(rate_limit_policy(&rules), r#""budget";q=150"#);
    }

    #[test]
    fn numbers_stay_within_what_the_format_allows() {
        assert_eq!(rate_limit_policy(&[rule("a", u64::MAX)]), r#""a";q=999999999999999;w=60"#);
    }

    #[test]
    fn without_rules_there_is_no_value() {
        assert_eq!(rate_limit(&[]), "");
    }

    proptest! {
        #[test]
        fn a_value_is_one_line_of_printable_ascii(ids in proptest::collection::vec(".{0,20}", 0..4)) {
            let rules: Vec<RuleStanding<'_>> = ids.iter().map(|id| rule(id, 9)).collect();
            for value in [rate_limit(&rules), rate_limit_policy(&rules)] {
                prop_assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", value);
            }
        }
    }
}
