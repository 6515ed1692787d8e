//! What the price list knows, and what it says where it knows nothing.

use loopbreaker::Timestamp;
use proptest::prelude::*;

use super::{Family, Price, Prices, PricesError, Rate, Rates};
use crate::Tokens;

const FAMILIES: [Family; 3] = [Family::OpenAi, Family::Anthropic, Family::Gemini];

fn price(input: f64, output: f64) -> Price {
    let usd = |usd| Rate::usd_per_million(usd).unwrap();
    Price::flat(Rates::new(usd(input), usd(output)))
}

/// The price of a thousand tokens in and a hundred out, where the model is known.
fn micros(prices: &Prices, family: Family, model: &str) -> Option<u64> {
    let cost = prices.cost(family, Some(model), &Tokens { input: 1_000, output: 100, ..Tokens::default() });
    cost.known.then_some(cost.micros)
}

#[test]
fn the_list_that_is_built_in_can_be_read() {
    let prices = Prices::from_json(include_str!("../../data/prices.json")).unwrap();
    for family in FAMILIES {
        assert!(prices.family(family).names.len() >= 10, "{family:?}");
    }
    assert_eq!(prices.as_of(), Prices::builtin().as_of());
}

#[test]
fn no_model_of_the_list_is_free_and_no_answer_is_cheaper_than_its_prompt() {
    let prices = Prices::builtin();
    for family in FAMILIES {
        for (model, price) in &prices.family(family).names {
            let cost = |input, cache_read, output| {
                price.cost(&Tokens { input, cache_read, output, ..Tokens::default() })
            };
            let (input, cached, output) = (cost(10_000, 0, 0), cost(0, 10_000, 0), cost(0, 0, 10_000));
            assert!(0 < cached && cached <= input && input < output, "{model}");
            assert!(cost(300_000, 0, 0) >= input * 30, "{model}: a long prompt is never cheaper");
        }
    }
}

#[test]
fn names_with_versions_and_vendors_are_known() {
    let prices = Prices::builtin();
    for (family, model, expected) in [
        (Family::OpenAi, "gpt-4o", 3_500),
        (Family::OpenAi, "gpt-4o-2024-11-20", 3_500),
        (Family::OpenAi, "gpt-4o-2024-05-13", 6_500),
        (Family::OpenAi, "openai/gpt-4o", 3_500),
        (Family::OpenAi, "gpt-4o-mini-2024-07-18", 210),
        (Family::OpenAi, "gpt-6.1-terra", 1_500),
        (Family::Anthropic, "claude-sonnet-4-5-20250929", 4_500),
        (Family::Anthropic, "us.anthropic.claude-opus-4-1-20250805-v1:0", 22_500),
        (Family::Anthropic, "claude-opus-4-20250514", 22_500),
        (Family::Gemini, "models/gemini-2.5-pro", 2_250),
        (Family::Gemini, "gemini-2.5-flash-preview-09-2025", 550),
        (Family::OpenAi, "anthropic/claude-sonnet-4.5", 4_500),
        (Family::OpenAi, "google/gemini-2.5-pro", 2_250),
    ] {
        assert_eq!(micros(&prices, family, model), Some(expected), "{model}");
    }
}

#[test]
fn cache_and_long_prompts_have_their_own_prices() {
    let prices = Prices::builtin();
    let cost = |model, tokens: Tokens| prices.cost(Family::Anthropic, Some(model), &tokens).micros;
    let tokens =
        Tokens { cache_read: 1_000, cache_write: 1_000, cache_write_long: 1_000, ..Tokens::default() };
    assert_eq!(cost("claude-opus-5-5", tokens), 200 + 5_000 + 8_000);
    let long = Tokens { input: 100_001, ..Tokens::default() };
    assert_eq!(cost("claude-haiku-5-5", Tokens { input: 100_000, ..long }), 10_000);
    assert_eq!(cost("claude-haiku-5-5", long), 50_001, "half a micro-dollar is one");
}

#[test]
fn thought_costs_what_the_answer_costs() {
    let prices = Prices::builtin();
    let cost = |tokens| prices.cost(Family::OpenAi, Some("o3"), &tokens).micros;
    assert_eq!(
        cost(Tokens { reasoning: 500, ..Tokens::default() }),
        cost(Tokens { output: 500, ..Tokens::default() })
    );
}

#[test]
fn a_model_without_a_price_costs_what_the_dearest_of_its_family_does() {
    let prices = Prices::builtin();
    for (family, dearest) in [
        (Family::OpenAi, "gpt-5.5-pro"),
        (Family::Anthropic, "claude-opus-4-1"),
        (Family::Gemini, "gemini-3.1-pro"),
    ] {
        let tokens = Tokens { input: 1_000, output: 1_000, ..Tokens::default() };
        for model in [None, Some("somebody/else-7b"), Some("")] {
            let cost = prices.cost(family, model, &tokens);
            assert!(!cost.known);
            assert_eq!(cost.micros, prices.cost(family, Some(dearest), &tokens).micros, "{family:?}");
        }
    }
}

#[test]
fn a_list_without_a_family_still_charges() {
    let only_gemini = r#"{"as_of":"2026-11-01","unit":"","source":"","notes":[],
        "models":[{"family":"gemini","models":["g"],"price":{"input":1,"output":2}}]}"#;
    let tokens = Tokens { input: 10, output: 10, ..Tokens::default() };
    let prices = Prices::from_json(only_gemini).unwrap();
    assert_eq!(prices.cost(Family::OpenAi, Some("x"), &tokens).micros, 30);
    assert!(Prices::default().cost(Family::OpenAi, Some("x"), &tokens).micros > 0);
}

#[test]
fn overrides_go_before_the_list() {
    let prices = Prices::builtin().with_overrides([
        ("gpt-4o", price(1.0, 1.0)),
        ("claude-*", price(2.0, 2.0)),
        ("claude-opus-*", price(3.0, 3.0)),
        ("meta-llama/*", price(4.0, 4.0)),
        ("qwen3:8b", price(0.0, 0.0)),
    ]);
    assert_eq!(micros(&prices, Family::OpenAi, "gpt-4o-2024-11-20"), Some(1_100));
    assert_eq!(micros(&prices, Family::OpenAi, "gpt-4o-mini"), Some(210), "another model");
    assert_eq!(micros(&prices, Family::Anthropic, "claude-sonnet-4-5"), Some(2_200));
    assert_eq!(micros(&prices, Family::Anthropic, "claude-opus-4-7"), Some(3_300), "the longer pattern");
    assert_eq!(micros(&prices, Family::OpenAi, "meta-llama/Llama-3-70b"), Some(4_400));
    assert_eq!(micros(&prices, Family::OpenAi, "qwen3:8b"), Some(0), "what is free by choice is free");
    assert_eq!(micros(&prices, Family::OpenAi, "mistral-large"), None);
}

#[test]
fn the_last_override_of_a_name_counts() {
    let twice =
        [("m", price(1.0, 1.0)), ("m", price(2.0, 2.0)), ("m*", price(3.0, 3.0)), ("m*", price(4.0, 4.0))];
    let prices = Prices::builtin().with_overrides(twice);
    assert_eq!(micros(&prices, Family::OpenAi, "m"), Some(2_200));
    assert_eq!(micros(&prices, Family::OpenAi, "mm"), Some(4_400));
}

#[test]
fn a_list_is_stale_after_ninety_days() {
    let prices =
        Prices::from_json(r#"{"as_of":"1970-01-01","unit":"","source":"","notes":[],"models":[]}"#).unwrap();
    let day = |day: u64| Timestamp::from_secs(day * 86_400);
    assert!(!prices.is_stale(day(90)));
    assert!(prices.is_stale(day(91)));
    assert_eq!(Prices::builtin().age_days(day(0)), 0, "a clock that is wrong makes no list old");
}

#[test]
fn what_is_wrong_with_a_list_is_said() {
    let problem = |text: &str| Prices::from_json(text).unwrap_err();
    let list = |models: &str| {
        format!(r#"{{"as_of":"2026-11-01","unit":"","source":"","notes":[],"models":[{models}]}}"#)
    };
    let dated = problem(r#"{"as_of":"November","unit":"","source":"","notes":[],"models":[]}"#);
    assert!(matches!(&dated, PricesError::Date(date) if date == "November"), "{dated}");
    let negative = problem(&list(r#"{"family":"openai","models":["m"],"price":{"input":-1,"output":2}}"#));
    assert!(negative.to_string().contains("from 0 to 1000000, but this one is -1"), "{negative}");
    let unknown = problem(&list(r#"{"family":"openai","models":["m"],"price":{"input":1,"outptu":2}}"#));
    assert!(unknown.to_string().contains("outptu"), "{unknown}");
}

proptest! {
    #[test]
    fn a_request_with_tokens_is_never_free_and_any_name_has_a_cost(
        model in proptest::option::of(".{0,40}"),
        family in proptest::sample::select(&FAMILIES),
        input in 0_u64..1_000_000,
        output in 0_u64..1_000_000,
    ) {
        let prices = Prices::builtin();
        let tokens = Tokens { input, output, ..Tokens::default() };
        let cost = prices.cost(family, model.as_deref(), &tokens);
        prop_assert_eq!(cost.micros == 0, tokens.total() == 0);
        let unknown = prices.cost(family, None, &tokens);
        prop_assert!(cost.known || cost == unknown);
    }
}
