//! The price list: what the providers charge, as data.

mod date;
mod model_name;
mod price;

use std::collections::HashMap;

use loopbreaker::{Timestamp, ToolPattern};
use serde::Deserialize;

use crate::tokens::Tokens;
pub use price::{Price, Rate, RateError, Rates};

/// Prices of models by provider, with the day on which they were true.
///
/// The list that is built in, `data/prices.json`, holds public list prices for text at the standard tier. What it does
/// not know, or what a contract makes cheaper, comes from the config as an override.
///
/// ```
/// use loopbreaker_budget::{Family, Price, Prices, Rate, Rates, Tokens};
///
/// let tokens = Tokens { input: 1_000, output: 100, ..Tokens::default() };
/// let prices = Prices::builtin();
/// let cost = prices.cost(Family::OpenAi, Some("gpt-4o-2024-11-20"), &tokens);
/// assert_eq!((cost.micros, cost.known), (3_500, true));
///
/// let unknown = prices.cost(Family::OpenAi, Some("llama-3-70b"), &tokens);
/// assert!(!unknown.known && unknown.micros > cost.micros);
///
/// let free = Price::flat(Rates::new(Rate::default(), Rate::default()));
/// let prices = prices.with_overrides([("llama-*", free)]);
/// assert!(prices.cost(Family::OpenAi, Some("llama-3-70b"), &tokens).known);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Prices {
    as_of: Box<str>,
    as_of_day: u64,
    overrides: PriceTable,
    openai: PriceTable,
    anthropic: PriceTable,
    gemini: PriceTable,
}

/// Whose models a dialect speaks to, as long as nothing else is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// The models of `api.openai.com`, and everything that speaks its dialects.
    OpenAi,
    /// Claude.
    Anthropic,
    /// Gemini.
    Gemini,
}

/// What a request costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Micro-dollars, rounded up.
    pub micros: u64,
    /// Whether the model has a price. It is charged at the dearest one of its family where it has none
    /// (`price_unknown`).
    pub known: bool,
}

/// Why a price list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// It is not what the format says.
    #[error("the price list cannot be read: {0}")]
    Format(#[from] serde_json::Error),
    /// Its date is none.
    #[error("`as_of` is {0:?}; write the day on which the prices were true as `2026-11-01`")]
    Date(String),
}

impl Prices {
    /// A list that is older than this should be looked at.
    pub const STALE_AFTER_DAYS: u64 = 90;

    /// The list that comes with this version.
    pub fn builtin() -> Self {
        // A test reads the file. Should it ever be unreadable, every price is unknown, and none is zero.
        Self::from_json(include_str!("../data/prices.json")).unwrap_or_default()
    }

    /// A list in the format of `data/prices.json`.
    pub fn from_json(text: &str) -> Result<Self, PricesError> {
        let list: PriceList = serde_json::from_str(text)?;
        let as_of_day =
            date::days_since_1970(&list.as_of).ok_or_else(|| PricesError::Date(list.as_of.clone()))?;
        let mut prices = Self { as_of: list.as_of.into(), as_of_day, ..Self::default() };
        for PriceEntry { family, models, price, long_prompt } in list.models {
            let flat = Price::flat(price.into());
            let price = long_prompt.map_or(flat, |long| flat.above(long.above, long.price.into()));
            for model in models {
                prices.family_mut(family).insert(&model, price);
            }
        }
        Ok(prices)
    }

    /// The same with other prices for these models, whatever their family.
    ///
    /// A name also stands for its versions; `*` and `?` are wildcards. A name goes before a pattern, a longer pattern
    /// before a shorter one, and every override before the list.
    #[must_use]
    pub fn with_overrides<'a>(mut self, overrides: impl IntoIterator<Item = (&'a str, Price)>) -> Self {
        for (model, price) in overrides {
            self.overrides.insert(model, price);
        }
        self
    }

    /// What a request to a model costs.
    ///
    /// A model of another family is found too, for many gateways speak one dialect to all of them. A model without a
    /// price, or without a name, costs what the dearest of its family would for the same tokens, never nothing. That
    /// is the dearest of the list: overrides belong to no family.
    pub fn cost(&self, family: Family, model: Option<&str>, tokens: &Tokens) -> Cost {
        match model.and_then(|model| self.price(family, model)) {
            Some(price) => Cost { micros: price.cost(tokens), known: true },
            None => Cost { micros: self.dearest(family, tokens), known: false },
        }
    }

    /// The price of a model, where it has one.
    pub fn price(&self, family: Family, model: &str) -> Option<&Price> {
        let tables = [&self.overrides, self.family(family), &self.openai, &self.anthropic, &self.gemini];
        let name = model_name::normalise(model);
        tables
            .into_iter()
            .find_map(|table| table.find_name(&name).or_else(|| table.find_pattern(&name, model)))
    }

    /// The day on which the list was true.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// How many days old the list is; `now` counts from 1970.
    ///
    /// ```
    /// use loopbreaker::Timestamp;
    /// use loopbreaker_budget::Prices;
    /// let prices = Prices::from_json(r#"{"as_of":"1970-01-11","unit":"","source":"","notes":[],"models":[]}"#)?;
    /// assert_eq!(prices.age_days(Timestamp::from_secs(15 * 86_400)), 5);
    /// # Ok::<(), loopbreaker_budget::PricesError>(())
    /// ```
    pub const fn age_days(&self, now: Timestamp) -> u64 {
        (now.as_millis() / 86_400_000).saturating_sub(self.as_of_day)
    }

    /// Whether the list is older than [`Self::STALE_AFTER_DAYS`].
    pub const fn is_stale(&self, now: Timestamp) -> bool {
        self.age_days(now) > Self::STALE_AFTER_DAYS
    }

    fn dearest(&self, family: Family, tokens: &Tokens) -> u64 {
        let own = self.family(family).dearest(tokens);
        let any = || {
            [&self.openai, &self.anthropic, &self.gemini]
                .into_iter()
                .filter_map(|table| table.dearest(tokens))
                .max()
        };
        own.or_else(any).unwrap_or_else(|| tokens.total().saturating_mul(Self::LAST_RESORT_MICROS_PER_TOKEN))
    }

    /// What a token costs where the list is empty: about the dearest that was ever sold.
    const LAST_RESORT_MICROS_PER_TOKEN: u64 = 600;

    const fn family(&self, family: Family) -> &PriceTable {
        match family {
            Family::OpenAi => &self.openai,
            Family::Anthropic => &self.anthropic,
            Family::Gemini => &self.gemini,
        }
    }

    const fn family_mut(&mut self, family: Family) -> &mut PriceTable {
        match family {
            Family::OpenAi => &mut self.openai,
            Family::Anthropic => &mut self.anthropic,
            Family::Gemini => &mut self.gemini,
        }
    }
}

/// Prices by name and by pattern.
#[derive(Debug, Clone, Default)]
struct PriceTable {
    names: HashMap<String, Price>,
    /// The longest first.
    patterns: Vec<(ToolPattern, Price)>,
}

impl PriceTable {
    fn insert(&mut self, model: &str, price: Price) {
        if model.contains(['*', '?']) {
            // The vendor stays, or `meta-llama/*` would be everything.
            let pattern = ToolPattern::new(&*model_name::spell(model));
            self.patterns.retain(|(known, _)| *known != pattern);
            let longer = |(known, _): &(ToolPattern, Price)| known.as_str().len() >= pattern.as_str().len();
            self.patterns.insert(self.patterns.partition_point(longer), (pattern, price));
        } else {
            self.names.insert(model_name::normalise(model).into_owned(), price);
        }
    }

    fn find_name(&self, name: &str) -> Option<&Price> {
        if self.names.is_empty() {
            return None;
        }
        model_name::bases(name).find_map(|base| self.names.get(base))
    }

    fn find_pattern(&self, name: &str, model: &str) -> Option<&Price> {
        if self.patterns.is_empty() {
            return None;
        }
        let with_vendor = model_name::spell(model);
        let fits =
            |(pattern, _): &&(ToolPattern, Price)| pattern.matches(name) || pattern.matches(&with_vendor);
        self.patterns.iter().find(fits).map(|(_, price)| price)
    }

    fn dearest(&self, tokens: &Tokens) -> Option<u64> {
        let patterns = self.patterns.iter().map(|(_, price)| price);
        self.names.values().chain(patterns).map(|price| price.cost(tokens)).max()
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    as_of: String,
    #[serde(rename = "unit")]
    _unit: String,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "notes")]
    _notes: Vec<String>,
    models: Vec<PriceEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceEntry {
    family: Family,
    models: Vec<String>,
    price: ListedRates,
    long_prompt: Option<LongPrompt>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPrompt {
    above: u64,
    price: ListedRates,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedRates {
    input: Rate,
    output: Rate,
    cache_read: Option<Rate>,
    cache_write: Option<Rate>,
    cache_write_long: Option<Rate>,
    reasoning: Option<Rate>,
}

impl From<ListedRates> for Rates {
    fn from(listed: ListedRates) -> Self {
        let ListedRates { input, output, .. } = listed;
        let cache_write = listed.cache_write.unwrap_or(input);
        Self {
            input,
            cache_read: listed.cache_read.unwrap_or(input),
            cache_write,
            cache_write_long: listed.cache_write_long.unwrap_or(cache_write),
            output,
            reasoning: listed.reasoning.unwrap_or(output),
        }
    }
}

#[cfg(test)]
mod tests;
