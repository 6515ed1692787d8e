//! The rules of a policy: how many requests, how many tokens, how much money.

use loopbreaker::Action;

use super::bundle;
use super::id::{self, Ids};
use super::limit_key::{self, LimitKey};
use super::parts::action;
use crate::cursor::{Cursor, Read};
use crate::fields::Fields;
use crate::kinds::{duration, large_whole, number};

/// How much may be used, and what is done beyond it.
///
/// ```
/// use loopbreaker::Action;
/// use loopbreaker_config::{Config, Limit, LimitKey, Quantity, Window};
/// let text = "policies: [{ id: a, spec: { rules: [{ id: budget, key: session, cost_usd: 5.00, on_exceed: pause }] } }]";
/// let rule = &Config::parse(text).unwrap().policies[0].rules[0];
/// assert_eq!((&rule.keys[..], rule.on_exceed), (&[LimitKey::Session][..], Action::Pause));
/// let five_dollars = Limit { quantity: Quantity::CostUsd, amount: 5_000_000, window: Window::Session };
/// assert_eq!(rule.limits, [five_dollars]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it is called in answers and logs; unlike every other rule of the policy.
    pub id: String,
    /// What is counted apart: each combination of these has its own counters. Empty: one counter for all.
    pub keys: Vec<LimitKey>,
    /// What may be used; all of them hold.
    pub limits: Vec<Limit>,
    /// Shares of each limit (above 0, up to 1) from which on a warning is given, smallest first.
    pub warn_at: Vec<f64>,
    /// What is done with a request beyond a limit: `Warn` and `Throttle` let it pass in the end, `Pause` holds its
    /// session for an operator, `Reject` refuses it.
    pub on_exceed: Action,
}

/// So much of something within a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    /// What is counted.
    pub quantity: Quantity,
    /// How much of it may be used: requests, tokens, or millionths of a US dollar.
    pub amount: u64,
    /// Within what time.
    pub window: Window,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Requests.
    Requests,
    /// Tokens, sent and answered.
    Tokens,
    /// Money, in millionths of a US dollar.
    CostUsd,
}

/// Within what time a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// Any stretch of so many seconds: the window slides.
    Seconds(u32),
    /// As long as the session lives.
    Session,
}

/// Every rule of a policy. `usual_key` is what a rule counts by when it does not say.
pub(super) fn read_all(value: Cursor<'_>, usual_key: &LimitKey) -> Read<Vec<Rule>> {
    let mut ids = Ids::of("rule");
    let rules = value.list(|rule| {
        let rules = read(rule, usual_key)?;
        for Rule { id, .. } in &rules {
            ids.claim(id, rule)?;
        }
        Ok(rules)
    });
    rules.map(|rules| rules.into_iter().flatten().collect())
}

/// One rule of ours, or as many as a rule of a policy bundle becomes.
fn read(value: Cursor<'_>, usual_key: &LimitKey) -> Read<Vec<Rule>> {
    let fields = value.map()?;
    if fields.has("algorithm") || fields.has("algorithm_config") {
        return bundle::rule(fields);
    }
    own(value, fields, usual_key).map(|rule| vec![rule])
}

fn own(value: Cursor<'_>, mut fields: Fields<'_>, usual_key: &LimitKey) -> Read<Rule> {
    let id = fields.required("id", "give the rule a name, such as `id: rpm`", id::read);
    let keys = fields.field("key", vec![usual_key.clone()], keys);
    let limits = limits(value, &mut fields, keys.as_deref().ok());
    let warn_at = fields.field("warn_at", Vec::new(), warn_at);
    let on_exceed = fields.field("on_exceed", Action::Reject, |value| {
        action(value, &[Action::Reject, Action::Pause, Action::Throttle, Action::Warn])
    });
    fields.finish();
    Ok(Rule { id: id?, keys: keys?, limits: limits?, warn_at: warn_at?, on_exceed: on_exceed? })
}

/// One name, or a list of them.
fn keys(value: Cursor<'_>) -> Read<Vec<LimitKey>> {
    if !value.is_list() {
        return limit_key::read(value).map(|key| vec![key]);
    }
    let keys = value.list(limit_key::read)?;
    if keys.is_empty() {
        return Err(value.refuse("this list is empty", "write what is counted apart, such as `key: tenant`"));
    }
    Ok(keys)
}

fn limits(value: Cursor<'_>, fields: &mut Fields<'_>, keys: Option<&[LimitKey]>) -> Read<Vec<Limit>> {
    let minute = Window::Seconds(60);
    let mut per_minute = |name, quantity| {
        fields
            .optional(name, count)
            .map(|amount| amount.map(|amount| Limit { quantity, amount, window: minute }))
    };
    let requests = per_minute("requests_per_minute", Quantity::Requests);
    let tokens = per_minute("tokens_per_minute", Quantity::Tokens);

    let period = fields.optional("period", |value| period(value, keys));
    let per_session = keys.is_none_or(|keys| keys.contains(&LimitKey::Session));
    let mut in_period = |name, quantity, read: fn(Cursor<'_>) -> Read<u64>| {
        fields.optional(name, |value| {
            let amount = read(value)?;
            let window = match period? {
                Some(window) => window,
                None if per_session => Window::Session,
                None => {
                    let hint =
                        "write for how long, such as `period: 1d`, or `key: session` to count per session";
                    return Err(value.refuse(format!("`{name}` needs a `period` beside it"), hint));
                }
            };
            Ok(Limit { quantity, amount, window })
        })
    };
    let others = [
        in_period("requests", Quantity::Requests, count),
        in_period("tokens", Quantity::Tokens, count),
        in_period("cost_usd", Quantity::CostUsd, money),
    ];
    let with_period = others.iter().any(|limit| !matches!(limit, Ok(None)));
    if fields.has("period") && !with_period {
        let hint = "remove it, or write `requests`, `tokens` or `cost_usd`";
        fields.about("period", |at| at.refuse("no limit of this rule has a `period`", hint));
    }

    let all: Read<Vec<Option<Limit>>> = [requests, tokens].into_iter().chain(others).collect();
    let all: Vec<Limit> = all?.into_iter().flatten().collect();
    if all.is_empty() {
        let hint = "write `requests_per_minute`, `tokens_per_minute`, `requests`, `tokens` or `cost_usd`";
        return Err(value.refuse("this rule limits nothing", hint));
    }
    Ok(all)
}

fn count(value: Cursor<'_>) -> Read<u64> {
    match large_whole(value)? {
        0 => Err(value.refuse("a limit of 0 would refuse every request", KILL_SWITCH)),
        amount => Ok(amount),
    }
}

/// Dollars, in millionths.
fn money(value: Cursor<'_>) -> Read<u64> {
    let dollars = number(value)?;
    if dollars == 0.0 {
        return Err(value.refuse("a limit of 0 would refuse every request", KILL_SWITCH));
    }
    let micros = (dollars * 1e6).round();
    if !(1.0..=MAX_MICROS).contains(&micros) {
        let message = "money is from 0.000001 to 1000000000 US dollars";
        return Err(value.refuse(message, "write an amount in US dollars, such as 5.00"));
    }
    #[expect(clippy::cast_sign_loss, reason = "the range was checked above")]
    Ok(micros as u64)
}

/// A duration in whole seconds, or `session`.
fn period(value: Cursor<'_>, keys: Option<&[LimitKey]>) -> Read<Window> {
    if value.scalar() == Some("session") {
        return match keys {
            Some(keys) if !keys.contains(&LimitKey::Session) => {
                let hint = "write `key: session`, or a period such as `1d`";
                Err(value.refuse("`period: session` needs the session among its keys", hint))
            }
            _ => Ok(Window::Session),
        };
    }
    let period = duration(value)?;
    let seconds = u32::try_from(period.as_secs()).unwrap_or(u32::MAX);
    if period.subsec_millis() != 0 || !(1..=MAX_PERIOD_SECONDS).contains(&seconds) {
        let message = "a period is from 1s to 366d, in whole seconds";
        return Err(value.refuse(message, "write it like `1m`, `1h`, `1d` or `session`"));
    }
    Ok(Window::Seconds(seconds))
}

/// One share, or a list of stages.
fn warn_at(value: Cursor<'_>) -> Read<Vec<f64>> {
    let mut stages = if value.is_list() { value.list(share)? } else { vec![share(value)?] };
    stages.sort_by(f64::total_cmp);
    stages.dedup();
    Ok(stages)
}

fn share(value: Cursor<'_>) -> Read<f64> {
    let share = number(value)?;
    if share > 0.0 && share <= 1.0 {
        return Ok(share);
    }
    let hint = "write a share of the limit, such as 0.8 for 80%";
    Err(value.refuse(format!("`warn_at` is {share}, it must be above 0 and at most 1"), hint))
}

/// The longest window: a leap year.
pub(super) const MAX_PERIOD_SECONDS: u32 = 366 * 86_400;
const MAX_MICROS: f64 = 1e15;
const KILL_SWITCH: &str = "write more; to refuse every request, use `kill_switches`";
