//! `prices`: what models cost, where the built-in list is wrong or silent.

use loopbreaker::ToolPattern;

use crate::cursor::{Cursor, Read};
use crate::kinds::number;

/// What some models cost, over the built-in list. A plain name wins over a glob, then the order counts.
///
/// ```
/// use loopbreaker_config::Config;
/// let config = Config::parse("prices: { my-model*: { input: 0.5, output: 1.5 } }").unwrap();
/// assert_eq!(config.prices.of("my-model-2").map(|price| price.output), Some(1.5));
/// assert!(config.prices.of("another").is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PriceOverrides {
    /// Models (names or globs) and their prices, in the order of the config.
    pub models: Vec<(ToolPattern, Price)>,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// What is sent.
    pub input: f64,
    /// What is answered.
    pub output: f64,
    /// What is read from the provider's prompt cache; as `input` when absent.
    pub cache_read: Option<f64>,
    /// What is written to the provider's prompt cache; as `input` when absent.
    pub cache_write: Option<f64>,
    /// What is thought and not shown; as `output` when absent.
    pub reasoning: Option<f64>,
}

impl PriceOverrides {
    /// The price of a model, when it was written down.
    pub fn of(&self, model: &str) -> Option<&Price> {
        let fitting = |(models, _): &&(ToolPattern, Price)| models.matches(model);
        let plain = self.models.iter().filter(|(models, _)| !models.is_glob()).find(fitting);
        plain.or_else(|| self.models.iter().find(fitting)).map(|(_, price)| price)
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<PriceOverrides> {
    let models = section.entries(|model, value| {
        if model.text.is_empty() {
            return Err(
                value.refuse("the name of a model is empty", "write its name, or `\"*\"` for every model")
            );
        }
        Ok((ToolPattern::new(&*model.text), price(value)?))
    });
    Ok(PriceOverrides { models: models? })
}

fn price(value: Cursor<'_>) -> Read<Price> {
    let mut fields = value.map()?;
    let input = fields.required("input", "write the price of a million tokens in US dollars", dollars);
    let output = fields.required("output", "write the price of a million tokens in US dollars", dollars);
    let cache_read = fields.optional("cache_read", dollars);
    let cache_write = fields.optional("cache_write", dollars);
    let reasoning = fields.optional("reasoning", dollars);
    fields.finish();
    Ok(Price {
        input: input?,
        output: output?,
        cache_read: cache_read?,
        cache_write: cache_write?,
        reasoning: reasoning?,
    })
}

fn dollars(value: Cursor<'_>) -> Read<f64> {
    match number(value)? {
        price if (0.0..=MAX_PRICE).contains(&price) => Ok(price),
        _ => {
            let message = format!("a price is from 0 to {MAX_PRICE} US dollars per million tokens");
            Err(value.refuse(message, "write it like 2.50"))
        }
    }
}

/// Far above every list price; what is larger was meant per thousand tokens or in cents.
const MAX_PRICE: f64 = 100_000.0;
