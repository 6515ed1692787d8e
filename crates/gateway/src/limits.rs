//! Rules of policies as charges against the ledger: checked, then reserved, then settled once.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderMap};
use loopbreaker::{Action, Timestamp};
use loopbreaker_budget::{
    Charge, Exceeded, Ledger, Quantity, Reservation, RuleStanding, Stage, Standing, Tokens, Window,
    estimate_tokens, rate_limit, rate_limit_policy,
};
use loopbreaker_config::LimitKey;
use loopbreaker_dialect::{Facts, Refusal};
use loopbreaker_fleet::{ChargeAsk, Told};
use twox_hash::XxHash3_128;

use crate::accounts::Accounts;
use crate::fleet::window_millis;
use crate::framed::Framed;
use crate::settings::{Applied, Budget};
use crate::verdict::{Proposal, Refused};

/// What a request's limits are keyed by.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'r> {
    /// The tenant's key, which is part of every other.
    pub(crate) tenant: u128,
    pub(crate) tenant_name: &'r str,
    /// Name of the session whose budget it is.
    pub(crate) session: &'r str,
    pub(crate) agent: &'r str,
    pub(crate) model: Option<&'r str>,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) query: &'r str,
}

impl Keys<'_> {
    /// Whether a limit key has this value.
    pub(crate) fn is(&self, key: &LimitKey, value: &str) -> bool {
        *self.value(key) == *value.as_bytes()
    }

    /// What stands under a limit key.
    pub(crate) fn value(&self, key: &LimitKey) -> Cow<'_, [u8]> {
        let text = match key {
            LimitKey::Tenant => self.tenant_name,
            LimitKey::Session => self.session,
            LimitKey::Agent => self.agent,
            LimitKey::Model => self.model.unwrap_or_default(),
            LimitKey::Header(name) => {
                return self.headers.get(name.as_str()).map_or(&b""[..], |value| value.as_bytes()).into();
            }
            LimitKey::Query(name) => query_value(self.query, name),
            LimitKey::JwtClaim(name) => {
                return jwt_claim(self.headers, name).unwrap_or_default().into_bytes().into();
            }
        };
        text.as_bytes().into()
    }

    /// The values of limit keys, as people read them.
    fn names(&self, keys: &[LimitKey]) -> String {
        let names = keys.iter().map(|key| String::from_utf8_lossy(&self.value(key)).into_owned());
        names.collect::<Vec<_>>().join(", ")
    }

    /// The charge of a request whose session is not known yet.
    fn charge(&self, applied: &Applied<'_>, budget: &Budget, estimate: Estimate) -> Charge {
        let mut fields = Framed::of(self.tenant);
        // A policy in shadow counts for itself.
        for name in [applied.mode().as_str(), &applied.policy.id, &budget.rule.id] {
            fields.add(name.as_bytes());
        }
        for key in budget.rule.keys.iter().filter(|key| **key != LimitKey::Session) {
            fields.add(&self.value(key));
        }
        let estimate = match budget.limit.quantity {
            Quantity::Requests => 1,
            Quantity::Tokens => estimate.tokens.under(budget.limit.amount),
            Quantity::Money => estimate.money_micros.under(budget.limit.amount),
        };
        Charge { key: fields.hash(), limit: budget.limit, estimate }
    }
}

/// What a request will probably use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Estimate {
    /// Tokens of the request itself.
    pub(crate) input: u64,
    /// Tokens of request and answer.
    tokens: Probable,
    money_micros: Probable,
}

impl Estimate {
    /// The estimate of a request of so many bytes, where `cost` knows what tokens cost in micro-dollars.
    pub(crate) fn of(bytes: u64, facts: &Facts, cost: impl Fn(&Tokens) -> u64) -> Self {
        let tokens = estimate_tokens(bytes, facts.max_output_tokens, facts.choices);
        let (all, money) = (tokens.total(), cost(&tokens));
        let (known, known_money) = if facts.max_output_tokens.is_some() {
            (all, money)
        } else {
            let asked = Tokens { output: 0, ..tokens };
            (asked.total(), cost(&asked))
        };
        Self {
            input: tokens.input,
            tokens: Probable { known, all },
            money_micros: Probable { known: known_money, all: money },
        }
    }
}

/// What a request will probably use of something.
#[derive(Debug, Clone, Copy, Default)]
struct Probable {
    /// What it says itself: its own length, and that of the longest answer that it allows.
    known: u64,
    /// The same with our guess at the answer, where it does not say.
    all: u64,
}

impl Probable {
    /// A guess takes at most this share of a budget. A small one could never be used otherwise: every request would seem
    /// to need more than the whole.
    const GUESSED_SHARE: u64 = 10;

    /// More than anything uses, and so little that sums of it are exact, here and in Redis: what a client makes up is
    /// taken back as it was counted, and nothing of what others have used with it.
    const MOST: u64 = 1 << 50;

    fn under(self, limit: u64) -> u64 {
        let guessed = self.all.saturating_sub(self.known);
        self.known.saturating_add(guessed.min(limit / Self::GUESSED_SHARE)).min(Self::MOST)
    }
}

/// The charges of one request.
#[derive(Default)]
pub(crate) struct Charges<'s> {
    charges: Vec<Charge>,
    of: Vec<(Applied<'s>, &'s Budget)>,
}

impl<'s> Charges<'s> {
    /// The charges of a request under these policies.
    pub(crate) fn of(policies: &[Applied<'s>], keys: &Keys<'_>, estimate: Estimate) -> Self {
        let mut all = Self::default();
        for applied in policies {
            for budget in &applied.policy.budgets {
                all.charges.push(keys.charge(applied, budget, estimate));
                all.of.push((*applied, budget));
            }
        }
        all
    }

    /// The account of the request's session is known by now: what is counted by session is counted for that one.
    pub(crate) fn belong_to(&mut self, account: &str) {
        for (charge, (_, budget)) in self.charges.iter_mut().zip(&self.of) {
            if by_session(budget) {
                let of_its_own = [&charge.key.to_le_bytes()[..], account.as_bytes()].concat();
                charge.key = XxHash3_128::oneshot(&of_its_own);
            }
        }
    }

    /// The charges as other processes are asked about them, before anybody knows the session.
    pub(crate) fn asked(&self) -> impl Iterator<Item = ChargeAsk> {
        self.charges.iter().zip(&self.of).map(|(charge, (applied, budget))| ChargeAsk {
            key: charge.key,
            by_session: by_session(budget),
            window_millis: window_millis(charge.limit.window),
            amount: charge.limit.amount,
            stops: stops(applied, budget, false),
            estimate: charge.estimate,
            stages: if applied.enforced { budget.stages.amounts(charge.limit.amount) } else { Vec::new() },
        })
    }

    /// What each charge counts.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = Quantity> {
        self.charges.iter().map(|charge| charge.limit.quantity)
    }

    /// Writes down how the budgets stand for all processes, so that this one knows what is left of them when the
    /// others cannot be asked.
    pub(crate) fn know(&self, ledger: &Ledger, told: &Told, now: Timestamp) {
        for (charge, stood) in self.charges.iter().zip(&told.standings) {
            let own = if told.is_reserved { charge.estimate } else { 0 };
            ledger.know(charge, stood.used.saturating_add(own), now);
        }
    }

    /// How the budgets stand for this process.
    pub(crate) fn standings(&self, ledger: &Ledger, now: Timestamp) -> Vec<Standing> {
        ledger.standings(&self.charges, now)
    }

    /// Makes the budgets of money known by the names of those whom they are for.
    pub(crate) fn make_known(&self, accounts: &Accounts, keys: &Keys<'_>) {
        for (charge, (applied, budget)) in self.charges.iter().zip(&self.of) {
            if budget.limit.quantity == Quantity::Money {
                accounts.charged(*charge, applied, budget, || keys.names(&budget.rule.keys));
            }
        }
    }

    /// What each enforced rule that is used up proposes; the one that stays so for longest comes first, for of equal ones
    /// the first is told, and whoever comes back sooner is refused again.
    pub(crate) fn check(&self, standings: &[Standing]) -> Vec<Proposal> {
        let all = self.charges.iter().zip(&self.of).zip(standings);
        let refused = all.filter(|((charge, (applied, _)), standing)| {
            applied.enforced && standing.refuses(charge.estimate)
        });
        let mut proposals: Vec<Proposal> = refused
            .map(|((charge, (_, budget)), standing)| proposal(budget, standing, charge.estimate))
            .collect();
        let retry_after =
            |proposal: &Proposal| proposal.refusal.as_ref().and_then(|refused| refused.retry_after);
        proposals.sort_by_key(|proposal| Reverse(retry_after(proposal)));
        proposals
    }

    /// The rule because of which nothing was reserved; of several the one that stays used up for longest.
    pub(crate) fn refusal(&self, standings: &[Standing], is_let_go: bool) -> Option<Refused> {
        let all = self.charges.iter().zip(&self.of).zip(standings);
        let refuses =
            |((charge, (applied, budget)), standing): &((&Charge, &(Applied<'_>, &Budget)), &Standing)| {
                stops(applied, budget, is_let_go) && standing.refuses(charge.estimate)
            };
        let refusals = all
            .filter(refuses)
            .map(|((charge, (_, budget)), standing)| refusal(budget, standing, charge.estimate));
        refusals.reduce(|longest, next| if next.retry_after > longest.retry_after { next } else { longest })
    }

    /// Reserves everything at the moment of release, or says which rule is used up by now.
    pub(crate) fn reserve(
        &self,
        ledger: &Ledger,
        now: Timestamp,
        is_let_go: bool,
    ) -> Result<Option<Reservation>, Box<Refused>> {
        if self.charges.is_empty() {
            return Ok(None);
        }
        let capped = |(charge, (applied, budget)): (&Charge, &(Applied<'_>, &Budget))| {
            // What only warns, or only looks, counts all the same.
            if stops(applied, budget, is_let_go) {
                *charge
            } else {
                Charge { limit: charge.limit.uncapped(), ..*charge }
            }
        };
        let charges: Vec<Charge> = self.charges.iter().zip(&self.of).map(capped).collect();
        match ledger.reserve(&charges, now) {
            Ok(reservation) => Ok(Some(reservation)),
            Err(Exceeded { index, standing }) => {
                // It tells of the first; others may be used up as well.
                let longest = self.refusal(&self.standings(ledger, now), is_let_go);
                let first = || refusal(self.of[index].1, &standing, self.charges[index].estimate);
                Err(Box::new(longest.unwrap_or_else(first)))
            }
        }
    }

    /// The highest stage that an enforced rule has newly reached, in words.
    pub(crate) fn stage(&self, ledger: &Ledger, now: Timestamp) -> Option<String> {
        let mut enforced = self.charges.iter().zip(&self.of).filter(|(_, (applied, _))| applied.enforced);
        enforced.find_map(|(charge, (_, budget))| {
            Some(announced(budget, ledger.announce(charge, &budget.stages, now)?))
        })
    }

    /// Whether no rule counts this request.
    pub(crate) const fn is_empty(&self) -> bool {
        self.charges.is_empty()
    }

    /// The same, as it was counted for all processes.
    pub(crate) fn stage_told(&self, told: &Told) -> Option<String> {
        let mut all = self.of.iter().zip(&told.standings);
        all.find_map(|((_, budget), stood)| Some(announced(budget, budget.stages.numbered(stood.stage)?)))
    }

    /// Whether any rule counts tokens or money, so that the provider must be asked for usage. One that only looks changes
    /// nothing of what is sent, and goes by the estimate.
    pub(crate) fn need_usage(&self) -> bool {
        let counts = |budget: &Budget| budget.limit.quantity != Quantity::Requests;
        self.of.iter().any(|(applied, budget)| applied.enforced && counts(budget))
    }
}

/// Whether nothing may go beyond a rule's limit. One that pauses leaves it to an operator, who may have let it go on.
fn stops(applied: &Applied<'_>, budget: &Budget, is_let_go: bool) -> bool {
    let from = if is_let_go { Action::Reject } else { Action::Pause };
    applied.enforced && budget.rule.on_exceed >= from
}

/// Whether each session has a count of its own.
fn by_session(budget: &Budget) -> bool {
    budget.rule.keys.contains(&LimitKey::Session)
}

fn announced(budget: &Budget, stage: Stage) -> String {
    format!("rule={}; stage={}", budget.rule.id, stage.fraction())
}

fn proposal(budget: &Budget, standing: &Standing, estimate: u64) -> Proposal {
    let action = budget.rule.on_exceed;
    Proposal {
        action,
        seen: None,
        hint: None,
        delay: if action == Action::Throttle { THROTTLE } else { Duration::ZERO },
        refusal: Some(refusal(budget, standing, estimate)),
    }
}

/// An amount as people write it: money in dollars, with as many digits as it has, two at least.
fn written(quantity: Quantity, amount: u64) -> String {
    if quantity != Quantity::Money {
        return amount.to_string();
    }
    let digits = format!("{:06}", amount % 1_000_000);
    let fine = digits[2..].trim_end_matches('0');
    format!("${}.{}{fine}", amount / 1_000_000, &digits[..2])
}

fn refusal(budget: &Budget, standing: &Standing, estimate: u64) -> Refused {
    let quantity = budget.limit.quantity;
    let unit = match quantity {
        Quantity::Requests => " requests",
        Quantity::Tokens => " tokens",
        Quantity::Money => "",
    };
    let Standing { used, amount, reset_seconds, .. } = *standing;
    let whole = written(quantity, amount);
    let (next, retry_after) = match budget.limit.window {
        Window::Seconds(_) => (format!("wait {reset_seconds} s"), reset_seconds.max(1)),
        // No time makes it larger, so clients are told a time for which none of them waits.
        Window::Session => ("start another session".to_owned(), 3_600),
    };
    let id = &budget.rule.id;
    let message = if used >= amount {
        let used = written(quantity, used);
        format!("the budget `{id}` is used up: {used} of {whole}{unit}; {next}, or raise the limit")
    } else {
        // What may come of it is told, since what was used does not explain it; and no time makes the whole larger.
        let (left, may_use) = (written(quantity, amount - used), written(quantity, estimate));
        let next = if estimate > amount { String::new() } else { format!(", {next}") };
        format!(
            "the budget `{id}` has {left} of {whole}{unit} left, and this request may use {may_use}; give it a \
             lower `max_tokens`{next}, or raise the limit"
        )
    };
    let told = [RuleStanding { rule: &budget.rule.id, limit: budget.limit, standing: *standing }];
    Refused {
        code: Refusal::BudgetExceeded,
        status: 429,
        message,
        retry_after: Some(retry_after),
        retry: false,
        rate_limit: Some((rate_limit(&told), rate_limit_policy(&told))),
    }
}

/// How long a request over a budget that throttles waits.
const THROTTLE: Duration = Duration::from_secs(1);

/// The first value of a query parameter, as it is written.
pub(crate) fn query_value<'q>(query: &'q str, name: &str) -> &'q str {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| *known == name).map_or("", |(_, value)| value)
}

/// A claim of the bearer token. It is not verified: the provider does that, and a forged one only counts elsewhere.
fn jwt_claim(headers: &HeaderMap, claim: &str) -> Option<String> {
    let token = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?.1;
    let payload = base64_url(token.split('.').nth(1)?)?;
    let claims: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&payload).ok()?;
    match claims.get(claim)? {
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Decodes base64 in its URL form, without padding.
fn base64_url(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    use loopbreaker_budget::Tokens;
    use loopbreaker_dialect::Facts;

    use super::{Estimate, Probable, Quantity, jwt_claim, query_value, written};

    #[test]
    fn what_a_client_makes_up_is_counted_as_so_little_that_it_can_be_taken_back() {
        let absurd = Probable { known: u64::MAX, all: u64::MAX };
        let counted = absurd.under(1_000);
        assert!(counted > 1_000, "it fits into no budget");
        assert_eq!((0..64).map(|_| counted).sum::<u64>() + 70 - 64 * counted, 70);
        assert!(counted < 1 << 53, "it is exact in Redis, too");
    }

    #[test]
    fn a_guess_at_the_answer_never_takes_a_small_budget_whole_and_what_the_client_allows_does() {
        let cost = |tokens: &Tokens| tokens.input + 10 * tokens.output;
        let guessed = Estimate::of(80, &Facts::default(), cost);
        assert_eq!(guessed.tokens.under(1_000_000), 20 + Tokens::DEFAULT_OUTPUT);
        assert_eq!((guessed.tokens.under(100), guessed.money_micros.under(500)), (20 + 10, 20 + 50));
        let allowed = Facts { max_output_tokens: Some(5_000), ..Facts::default() };
        assert_eq!(Estimate::of(80, &allowed, cost).tokens.under(100), 5_020);
    }

    #[test]
    fn a_claim_is_read_from_the_bearer_token() {
        // {"org_id":"acme","n":7}
        let token = "Bearer e30.eyJvcmdfaWQiOiJhY21lIiwibiI6N30.sig";
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(token))]);
        assert_eq!(jwt_claim(&headers, "org_id").as_deref(), Some("acme"));
        assert_eq!(jwt_claim(&headers, "n").as_deref(), Some("7"));
        assert_eq!(jwt_claim(&headers, "x"), None);
    }

    #[test]
    fn a_token_that_is_none_has_no_claims() {
        for token in ["Bearer sk-123", "Bearer a.b", "Basic x", "Bearer a.!.c", "x"] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(token))]);
            assert_eq!(jwt_claim(&headers, "org_id"), None, "{token}");
        }
    }

    #[test]
    fn money_is_told_in_dollars() {
        let told = [5_000_000, 2_500_000, 27, 1_230_400].map(|micros| written(Quantity::Money, micros));
        assert_eq!(told, ["$5.00", "$2.50", "$0.000027", "$1.2304"]);
        assert_eq!(written(Quantity::Tokens, 100_000), "100000");
    }

    #[test]
    fn a_query_value_is_found_by_its_whole_name() {
        assert_eq!(query_value("ab=1&b=2&b=3", "b"), "2");
        assert_eq!(query_value("", "b"), "");
    }
}
