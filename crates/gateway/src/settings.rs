//! The config in the form that requests use: compiled once, swapped whole.

use std::sync::Arc;

use hyper::header::HeaderValue;
use loopbreaker::{RedundancyRules, Timestamp};
use loopbreaker_budget::{Limit, Price, Prices, Quantity, Rate, Rates, Stages, Window};
use loopbreaker_config::{
    self as config, BaseUrl, Config, Dialect as Provider, Policy, Rule, Selector, Subject,
};
use loopbreaker_telemetry::Mode;

use crate::few::Few;
use crate::meaning::compares;
use crate::spellings::Spellings;
use crate::upstream::Origin;

/// Settings of one moment. A request keeps those that it began with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    /// Policies in force, those that are off left out.
    pub(crate) policies: Vec<ActivePolicy>,
    /// The detector's rules, compiled.
    pub(crate) rules: RedundancyRules,
    pub(crate) prices: Prices,
    /// Whether any policy counts identical requests.
    pub(crate) counts_requests: bool,
    /// Whether any policy compares what is said.
    pub(crate) compares: bool,
    /// Which requests those policies count, whoever sends them.
    counted: Vec<Selector>,
    openai: Upstream,
    anthropic: Upstream,
    gemini: Upstream,
    routes: Vec<Upstream>,
}

/// A policy that looks at requests.
#[derive(Debug)]
pub(crate) struct ActivePolicy {
    pub(crate) id: Arc<str>,
    pub(crate) mode: Mode,
    pub(crate) policy: Policy,
    pub(crate) budgets: Vec<Budget>,
}

/// A policy as it holds for one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Applied<'s> {
    pub(crate) policy: &'s ActivePolicy,
    /// Whether what it finds has consequences.
    pub(crate) enforced: bool,
}

impl Applied<'_> {
    /// The mode under which it counts.
    pub(crate) const fn mode(&self) -> Mode {
        if self.enforced { Mode::Enforce } else { Mode::Shadow }
    }
}

/// One limit of a rule.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) rule: Rule,
    pub(crate) limit: Limit,
    pub(crate) stages: Stages,
}

/// Where a provider is.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) origin: Origin,
    /// What its `Host` header says.
    pub(crate) host: HeaderValue,
    /// What stands before every path.
    pub(crate) base_path: String,
    /// The name under which it is shown.
    pub(crate) name: Arc<str>,
}

impl Settings {
    /// Compiles a config.
    pub(crate) fn compile(config: Config) -> Self {
        let policies: Vec<ActivePolicy> = config
            .policies_in_force()
            .iter()
            .filter(|policy| policy.mode != config::Mode::Off)
            .map(ActivePolicy::compile)
            .collect();
        let upstreams = &config.upstreams;
        Self {
            rules: RedundancyRules::compile(&config.detectors.redundancy),
            prices: prices(&config),
            counts_requests: policies.iter().any(|active| active.policy.loop_detection.is_some()),
            compares: policies.iter().any(|active| compares(&active.policy)),
            counted: policies.iter().filter_map(ActivePolicy::counted).collect(),
            openai: Upstream::at(&upstreams.openai),
            anthropic: Upstream::at(&upstreams.anthropic),
            gemini: Upstream::at(&upstreams.gemini),
            routes: upstreams.routes.iter().map(|route| Upstream::at(&route.base_url)).collect(),
            policies,
            config,
        }
    }

    /// Whether a request that speaks no dialect may be counted, so that the start of its body has to be known.
    pub(crate) fn may_count(&self, method: &str, path: &str, host: Option<&str>) -> bool {
        let subject = Subject { method, path, host, ..Subject::default() };
        let spellings = Spellings::of(subject);
        self.counted.iter().any(|selector| spellings.fit(selector))
    }

    /// Whether there are policies, and none of them is enforced.
    pub(crate) fn all_in_shadow(&self, today: Timestamp) -> bool {
        let is_enforced = |policy: &ActivePolicy| policy.mode == Mode::Enforce;
        self.config.global_shadow.is_on(today)
            || (!self.policies.is_empty() && !self.policies.iter().any(is_enforced))
    }

    /// The policies that look at a request.
    pub(crate) fn applied(&self, subject: &Subject<'_>, today: Timestamp) -> Few<Applied<'_>> {
        let all_in_shadow = self.config.global_shadow.is_on(today);
        let spellings = Spellings::of(*subject);
        let matching = self.policies.iter().filter(|policy| spellings.fit(&policy.policy.selector));
        matching
            .map(|policy| Applied { policy, enforced: policy.mode == Mode::Enforce && !all_in_shadow })
            .collect()
    }

    /// The upstream of a destination.
    pub(crate) fn upstream(&self, provider: Provider, route: Option<usize>) -> &Upstream {
        match (route.and_then(|index| self.routes.get(index)), provider) {
            (Some(routed), _) => routed,
            (None, Provider::OpenAi) => &self.openai,
            (None, Provider::Anthropic) => &self.anthropic,
            (None, Provider::Gemini) => &self.gemini,
        }
    }
}

impl ActivePolicy {
    /// Which requests it counts, whoever sends them; `None`: it counts none.
    fn counted(&self) -> Option<Selector> {
        self.policy.loop_detection?;
        Some(Selector { tenants: Vec::new(), ..self.policy.selector.clone() })
    }

    fn compile(policy: &Policy) -> Self {
        let shadow = policy.mode == config::Mode::Shadow;
        let budgets = policy.rules.iter().flat_map(|rule| {
            rule.limits.iter().map(|limit| Budget {
                rule: rule.clone(),
                limit: Limit {
                    quantity: match limit.quantity {
                        config::Quantity::Requests => Quantity::Requests,
                        config::Quantity::Tokens => Quantity::Tokens,
                        config::Quantity::CostUsd => Quantity::Money,
                    },
                    amount: limit.amount,
                    window: match limit.window {
                        config::Window::Seconds(seconds) => Window::Seconds(seconds),
                        config::Window::Session => Window::Session,
                    },
                },
                // The config has checked the stages, so none is lost here.
                stages: Stages::new(&rule.warn_at).unwrap_or_default(),
            })
        });
        Self {
            id: policy.id.as_str().into(),
            mode: if shadow { Mode::Shadow } else { Mode::Enforce },
            budgets: budgets.collect(),
            policy: policy.clone(),
        }
    }
}

impl Upstream {
    fn at(url: &BaseUrl) -> Self {
        let authority = url.authority();
        Self {
            origin: Origin::of(url),
            // A base URL that was parsed has a host that can stand in a header.
            host: HeaderValue::from_str(&authority).unwrap_or_else(|_| HeaderValue::from_static("")),
            base_path: url.path().trim_end_matches('/').to_owned(),
            name: authority.into(),
        }
    }
}

/// The built-in prices with the config's own above them.
fn prices(config: &Config) -> Prices {
    let overrides = config.prices.models.iter().map(|(models, price)| {
        // The config has checked that prices are numbers and not negative.
        let rate = |usd| Rate::usd_per_million(usd).unwrap_or_default();
        let or_input = |usd: Option<f64>| rate(usd.unwrap_or(price.input));
        let rates = Rates {
            cache_read: or_input(price.cache_read),
            cache_write: or_input(price.cache_write),
            cache_write_long: or_input(price.cache_write),
            reasoning: rate(price.reasoning.unwrap_or(price.output)),
            ..Rates::new(rate(price.input), rate(price.output))
        };
        (models.as_str(), Price::flat(rates))
    });
    Prices::builtin().with_overrides(overrides)
}
