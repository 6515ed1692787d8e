//! The algorithms of a bundle's rules, as limits of ours.
//!
//! Its buckets refill all the time and hold a burst; our windows slide. A bucket of rate r and size b becomes one
//! window of w seconds, the time that fills it (b / r, rounded up), in which r · w pass: the lasting rate is the same,
//! a burst of b always passes, and no stretch of time lets more through than the bucket would and one second more.
//! A budget with stages becomes a limit that warns and rejects, and a second one that throttles.

use loopbreaker::Action;

use crate::cursor::{Cursor, Read};
use crate::fields::Fields;
use crate::kinds::{number, positive, text};
use crate::path::quote;
use crate::sections::policies::parts;
use crate::sections::policies::rule::{Limit, MAX_PERIOD_SECONDS, Quantity, Window};
use crate::suggest::suggest;

/// How a rule counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Algorithm {
    TokenBucket,
    TokenBucketLlm,
    CostBased,
}

/// What the numbers of an algorithm become.
pub(super) struct Allowance {
    pub(super) limits: Vec<Limit>,
    pub(super) warn_at: Vec<f64>,
    /// What may be used before requests are delayed.
    pub(super) throttled: Option<Limit>,
}

impl Allowance {
    fn rejecting(limits: Vec<Limit>) -> Self {
        Self { limits, warn_at: Vec::new(), throttled: None }
    }
}

pub(super) fn name(value: Cursor<'_>) -> Read<Algorithm> {
    let text = text(value)?;
    let elsewhere = |hint| Err(value.refuse(format!("{} is no algorithm of a rule", quote(&text)), hint));
    match &*text {
        "token_bucket" => Ok(Algorithm::TokenBucket),
        "token_bucket_llm" => Ok(Algorithm::TokenBucketLlm),
        "cost_based" => Ok(Algorithm::CostBased),
        "loop_detection" => {
            elsewhere("write it beside `rules`, as `loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 5 }`".to_owned())
        }
        other => elsewhere(suggest(other, &["token_bucket", "token_bucket_llm", "cost_based"])),
    }
}

/// The numbers of an algorithm.
pub(super) fn allowance(algorithm: Algorithm, config: Cursor<'_>) -> Read<Allowance> {
    match algorithm {
        Algorithm::TokenBucket => token_bucket(config),
        Algorithm::TokenBucketLlm => token_bucket_llm(config),
        Algorithm::CostBased => cost_based(config),
    }
}

/// So many requests per second, with a burst.
fn token_bucket(config: Cursor<'_>) -> Read<Allowance> {
    let mut fields = config.map()?;
    fields.ignored("algorithm");
    let rate_key = if fields.has("rps") { "rps" } else { "tokens_per_second" };
    let rate = fields.required(rate_key, "write how many requests per second", positive);
    let burst = fields.required("burst", "write how many requests may come at once", positive);
    let cost = fixed_cost(&mut fields, "cost_source");
    let limit = rate.and_then(|rate| {
        let (burst, cost) = (burst?, cost?);
        fields.about("burst", |at| bucket(at, Quantity::Requests, rate / cost, burst / cost))
    });
    fields.finish();
    Ok(Allowance::rejecting(vec![limit?]))
}

/// So many tokens per minute, with a burst, and per day.
fn token_bucket_llm(config: Cursor<'_>) -> Read<Allowance> {
    let mut fields = config.map()?;
    fields.ignored("algorithm");
    let per_minute = fields.required("tokens_per_minute", "write how many tokens per minute", positive);
    let per_day = fields.optional("tokens_per_day", positive);
    let burst = fields.optional("burst_tokens", positive);
    for name in ["default_max_completion", "default_max_completion_tokens"] {
        fields.check(name, |value| {
            let hint = "remove it; what was used is settled after the answer";
            value.notice("answers without a limit of their own are estimated in our way", hint);
            positive(value)
        });
    }
    for name in ["max_tokens_per_request", "max_prompt_tokens", "max_completion_tokens"] {
        fields.foreign(
            name,
            &format!("`{name}` has no counterpart: one request alone is not limited"),
            "remove it, or limit what is used with `tokens_per_minute` and `tokens_per_day`",
        );
    }
    fields.check("token_source", token_source);
    let minute = per_minute.and_then(|per_minute| {
        let burst = burst?.unwrap_or(per_minute);
        let key = if fields.has("burst_tokens") { "burst_tokens" } else { "tokens_per_minute" };
        fields.about(key, |at| {
            if burst < per_minute {
                return Err(
                    at.refuse("`burst_tokens` is below `tokens_per_minute`", "write at least as many")
                );
            }
            bucket(at, Quantity::Tokens, per_minute / 60.0, burst)
        })
    });
    fields.finish();
    let day = |amount| Limit {
        quantity: Quantity::Tokens,
        amount: rounded(amount).max(1),
        window: Window::Seconds(86_400),
    };
    Ok(Allowance::rejecting(std::iter::once(minute?).chain(per_day?.map(day)).collect()))
}

fn token_source(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    let estimator = fields.field("estimator", (), |value| match &*text(value)? {
        "simple_word" => Ok(()),
        other => Err(value.refuse(
            format!("the estimator {} has no counterpart", quote(other)),
            "write `simple_word`, or remove it: what was used is settled after the answer",
        )),
    });
    fields.finish();
    estimator
}

/// So much cost within a period, with stages on the way. Every request costs the same, so these are requests.
fn cost_based(config: Cursor<'_>) -> Read<Allowance> {
    let mut fields = config.map()?;
    fields.ignored("algorithm");
    let budget = fields.required("budget", "write how much may be used within the period", positive);
    let seconds = fields.required("period", "write `5m`, `1h`, `1d` or `7d`", |value| {
        value.choice(&[("5m", 300), ("1h", 3_600), ("1d", 86_400), ("7d", 7 * 86_400)])
    });
    let cost = fixed_cost(&mut fields, "cost_key");
    let stages = fields.required("staged_actions", STAGES_HINT, stages);
    let limits = budget.and_then(|budget| {
        let (requests, window) = (budget / cost?, Window::Seconds(seconds?));
        let limit = |amount| Limit { quantity: Quantity::Requests, amount, window };
        if requests < 1.0 {
            let hint = "write a larger budget, or a smaller `fixed_cost`";
            return Err(fields.about("budget", |at| at.refuse("not even one request fits this budget", hint)));
        }
        let Stages { warn_at, throttle_at } = stages?;
        // Its stages act on the request that reaches the share, our limits on the first one beyond.
        let before = |share: f64| limit(rounded((requests * share).ceil() - 1.0).max(1));
        Ok(Allowance {
            limits: vec![limit(rounded(requests.floor()))],
            warn_at,
            throttled: throttle_at.map(before),
        })
    });
    fields.finish();
    limits
}

/// What is done on the way to a limit, as shares of it.
#[derive(Default)]
struct Stages {
    warn_at: Vec<f64>,
    throttle_at: Option<f64>,
}

/// The stages in any order, each at a threshold of its own.
fn stages(value: Cursor<'_>) -> Read<Stages> {
    let mut stages = Stages::default();
    let (mut seen, mut rejects) = (Vec::new(), false);
    value.list(|stage| {
        let mut fields = stage.map()?;
        let share = fields.required("threshold_percent", "write a number from 0 to 100", |value| {
            let percent = number(value)?;
            if !(0.0..=100.0).contains(&percent) || seen.contains(&percent) {
                let message = "each stage has a threshold of its own, from 0 to 100";
                return Err(value.refuse(message, "write another number"));
            }
            seen.push(percent);
            Ok(percent / 100.0)
        });
        let action = fields.required("action", "write `warn`, `throttle` or `reject`", |value| {
            parts::action(value, &[Action::Warn, Action::Throttle, Action::Reject])
        });
        fields.check("delay_ms", |value| {
            value.notice("how long a throttled request waits is ours to say", "remove it");
            positive(value)
        });
        fields.finish();
        let share = share?;
        match action? {
            Action::Warn if share > 0.0 => stages.warn_at.push(share),
            // The delay grows by itself, so the first of several stages stands for all.
            Action::Throttle if share > 0.0 => {
                stages.throttle_at = Some(stages.throttle_at.map_or(share, |other| other.min(share)));
            }
            Action::Reject if share >= 1.0 => rejects = true,
            _ => {
                let message = "a stage at 0, or one that rejects below 100, has no counterpart";
                return Err(stage.refuse(message, STAGES_HINT));
            }
        }
        Ok(())
    })?;
    if !rejects {
        return Err(value.refuse("no stage rejects at 100", STAGES_HINT));
    }
    stages.warn_at.sort_by(f64::total_cmp);
    Ok(stages)
}

/// What one request costs. A cost that a header or the query names is no cost that we can believe or settle.
fn fixed_cost(fields: &mut Fields<'_>, source_key: &'static str) -> Read<f64> {
    fields.check(source_key, |value| match &*text(value)? {
        "fixed" => Ok(()),
        other => Err(value.refuse(
            format!("the cost source {} has no counterpart: a client would name its own cost", quote(other)),
            "write `fixed`, or a rule with `cost_usd` or `tokens_per_minute`, which count what was really used",
        )),
    });
    fields.check("default_cost", positive);
    fields.field("fixed_cost", 1.0, positive)
}

/// A bucket of this rate per second and this size as a window that slides.
fn bucket(at: Cursor<'_>, quantity: Quantity, rate: f64, size: f64) -> Read<Limit> {
    if size < rate && quantity == Quantity::Requests {
        return Err(at.refuse("`burst` is below the rate per second", "write at least as many"));
    }
    if size < 1.0 {
        return Err(at.refuse("not even one request fits this burst", "write a larger `burst`"));
    }
    // Rates such as 100000 / 60 have no exact form, and a full minute must not become 61 seconds.
    let seconds = (size / rate * (1.0 - 1e-9)).ceil();
    if seconds > f64::from(MAX_PERIOD_SECONDS) {
        return Err(at.refuse("this bucket takes more than 366 days to fill", "write a higher rate"));
    }
    let amount = rounded(rate * seconds).max(rounded(size.floor()));
    #[expect(clippy::cast_sign_loss, reason = "both numbers are above 0, the range was checked")]
    Ok(Limit { quantity, amount, window: Window::Seconds(seconds as u32) })
}

/// A number that is not negative as a whole one; the largest possible when it is larger.
#[expect(clippy::cast_sign_loss, reason = "what is negative becomes 0")]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

const STAGES_HINT: &str =
    "write `warn` and `throttle` above 0 and `reject` at 100; for less, write a smaller budget";
