//! The built-in prices, and the costs of recorded usages by them.

use std::collections::BTreeMap;

use paceline_limiter::quota::{Usage, Usd};
use paceline_provider::price::{Price, Prices};
use paceline_provider::{
    ANTHROPIC, AZURE, BEDROCK, GEMINI, GROQ, OPENAI, Profile, TOGETHER, VERTEX_ANTHROPIC,
};
use serde_json::Value;

use super::recordings::{Recorded, all};

const TABLE: &str = include_str!("../../src/price/prices.json");

/// Computes costs from the texts of the table by exact decimal arithmetic.
struct Reference(BTreeMap<String, BTreeMap<String, Box<serde_json::value::RawValue>>>);

impl Reference {
    fn read() -> Self {
        Self(serde_json::from_str(TABLE).unwrap())
    }

    /// Returns the dollars per token in a field, times 10^18.
    fn rate(&self, model: &str, field: &str) -> Option<u128> {
        let text = self.0[model].get(field)?.get();
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let exponent =
            18 + exponent.parse::<i32>().unwrap() - i32::try_from(fraction.len()).unwrap();
        let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
        Some(digits * 10_u128.pow(exponent.try_into().unwrap()))
    }

    /// Returns the cost in micro-dollars, rounded up.
    fn cost(&self, model: &str, usage: &Usage) -> u64 {
        let fields = self.0[model].keys().filter_map(|field| {
            let thousands =
                field.strip_prefix("input_cost_per_token_above_")?.strip_suffix("k_tokens")?;
            Some((thousands.parse::<u64>().unwrap() * 1_000, format!("_above_{thousands}k_tokens")))
        });
        let suffix =
            fields.filter(|(tokens, _)| usage.input > *tokens).max().map(|(_, suffix)| suffix);
        let of = |field: &str, otherwise: u128| {
            let long =
                suffix.as_ref().and_then(|suffix| self.rate(model, &format!("{field}{suffix}")));
            long.or_else(|| self.rate(model, field)).unwrap_or(otherwise)
        };
        let input = of("input_cost_per_token", 0);
        let write = of("cache_creation_input_token_cost", input);
        let sum = u128::from(usage.input - usage.cache_read - usage.cache_write) * input
            + u128::from(usage.cache_read) * of("cache_read_input_token_cost", input)
            + u128::from(usage.cache_write) * write
            + u128::from(usage.output) * of("output_cost_per_token", 0);
        u64::try_from(sum.div_ceil(10_u128.pow(12))).unwrap()
    }
}

#[test]
fn recorded_usages_cost_what_the_table_says() {
    let Some(entries) = all() else { return };
    let (reference, prices) = (Reference::read(), Prices::built_in());
    let mut counted = 0;
    for entry in &entries {
        let (Some(Some(usage)), Some(model)) = (entry.usage(), entry.expected["model"].as_str())
        else {
            continue;
        };
        let has_audio_price =
            |row: &str| reference.rate(row, "output_cost_per_audio_token").is_some();
        if !reference.0.contains_key(model) || has_audio_price(model) {
            continue;
        }
        // The provider's own row takes precedence; only rows under the bare name are compared.
        let Some(price) = prices.of(OPENAI, model) else { panic!("{model} has no price") };
        assert_eq!(price.cost(&usage), reference.cost(model, &usage), "{model}: {usage:?}");
        counted += 1;
    }
    assert!(counted >= 150, "{counted} usages");
}

#[test]
fn models_have_the_prices_of_their_providers() {
    let prices = Prices::built_in();
    let million = Usage { input: 1_000_000, ..Usage::default() };
    let input = |profile, model| prices.of(profile, model).map(|price| price.cost(&million));
    assert_eq!(input(OPENAI, "gpt-4o"), Some(2_500_000));
    assert_eq!(input(OPENAI, "gpt-4o-2199-01-31"), Some(2_500_000));
    assert_eq!(input(ANTHROPIC, "claude-opus-4-5-20251101"), Some(5_000_000));
    assert!(input(GROQ, "openai/gpt-oss-120b").is_some());
    assert!(input(BEDROCK, "anthropic.claude-3-5-haiku-20241022-v1:0").is_some());
    assert!(input(VERTEX_ANTHROPIC, "claude-sonnet-4-5@20250929").is_some());
    assert!(input(TOGETHER, "meta-llama/Llama-3.3-70B-Instruct-Turbo").is_some());
    assert_eq!(input(OPENAI, "house-model"), None);
    let own = prices.with("house-model", Price::per_million(Usd::default(), Usd::default()));
    assert_eq!(own.of(OPENAI, "house-model").map(|price| price.cost(&million)), Some(0));
}

#[test]
fn own_price_precedes_the_built_in_one_of_any_name() {
    let own = Price::per_million(Usd::from_micros(1), Usd::from_micros(1));
    let reference = Reference::read();
    let of_azure = reference.0.keys().filter_map(|name| name.strip_prefix("azure/"));
    let models: Vec<_> = of_azure.collect();
    assert!(models.len() >= 100);
    let million = Usage { input: 1_000_000, ..Usage::default() };
    for model in models {
        let prices = Prices::built_in().with(model, own.clone());
        assert_eq!(prices.of(AZURE, model).unwrap().cost(&million), 1, "{model}");
    }
    for profile in Profile::all() {
        let name = format!("{}/some-model-x", profile.name());
        let prices = Prices::built_in().with(&name, own.clone());
        assert!(prices.of(*profile, "some-model-x").is_some(), "{name}");
    }
    let prices = Prices::built_in()
        .with("gpt-4o", own)
        .with("azure/gpt-4o", Price::per_million(Usd::from_micros(2), Usd::from_micros(2)));
    let input = |profile, model| prices.of(profile, model).unwrap().cost(&million);
    assert_eq!((input(AZURE, "gpt-4o"), input(OPENAI, "gpt-4o")), (2, 1));
    assert_eq!(input(OPENAI, "gpt-4o-2024-08-06"), 1);
}

#[test]
fn modes_have_prices_of_their_own() {
    let usage =
        Usage { input: 1_000_000, cache_read: 400_000, output: 100_000, ..Usage::default() };
    let cost = |prices: &Prices, profile, model, mode| {
        prices.of_mode(profile, model, mode).map(|price| price.cost(&usage))
    };
    let built_in = Prices::built_in();
    // gpt-5: $1.25, $0.125 for cached tokens, and $10; twice as much with priority and half as much in flex.
    let standard = cost(&built_in, OPENAI, "gpt-5", "").unwrap();
    assert_eq!(standard, 750_000 + 50_000 + 1_000_000);
    assert_eq!(cost(&built_in, OPENAI, "gpt-5", "priority"), Some(2 * standard));
    assert!(cost(&built_in, OPENAI, "gpt-5", "flex").unwrap() < standard);
    assert_eq!(cost(&built_in, OPENAI, "gpt-5", "unheard-of"), None);
    // No flex price is listed.
    let model = "gpt-4o";
    assert_eq!(cost(&built_in, OPENAI, model, "flex"), cost(&built_in, OPENAI, model, ""));
    let standard = cost(&built_in, ANTHROPIC, "claude-opus-5", "").unwrap();
    assert_eq!(cost(&built_in, ANTHROPIC, "claude-opus-5-20990101", "fast"), Some(2 * standard));
    assert_eq!(cost(&built_in, ANTHROPIC, "claude-opus-5", "us"), Some(standard * 11 / 10));
    assert_eq!(cost(&built_in, ANTHROPIC, "claude-opus-5", "fast:us"), None);
    let own = built_in
        .with("claude-opus-5:fast", Price::per_million(Usd::from_micros(7), Usd::from_micros(0)));
    assert_eq!(cost(&own, ANTHROPIC, "claude-opus-5", "fast"), Some(7));
    assert_eq!(cost(&own, ANTHROPIC, "claude-opus-5", ""), Some(standard));
    let own = own.with("gpt-5", Price::per_million(Usd::from_micros(9), Usd::from_micros(0)));
    assert_eq!(cost(&own, OPENAI, "gpt-5", "flex"), Some(9));
    assert_eq!(cost(&own, OPENAI, "gpt-5", "priority"), None);
}

#[test]
fn long_prompts_and_audio_have_prices_of_their_own() {
    let price = Prices::built_in().of(GEMINI, "gemini-2.5-pro").unwrap();
    let cost = |input, output| price.cost(&Usage { input, output, ..Usage::default() });
    assert_eq!((cost(200_000, 1_000), cost(200_001, 1_000)), (260_000, 515_003));
    assert_eq!(price.most(200_001, 1_000), 515_003);
    let row = r#"{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
        "input_cost_per_audio_token": 5e-6}}"#;
    let price = Prices::from_litellm(row).unwrap().of(OPENAI, "m").unwrap();
    let usage = Usage { input: 10, output: 1, ..Usage::default() };
    assert_eq!((price.cost(&usage), price.with_audio().cost(&usage)), (12, 52));
}

#[test]
fn cache_kept_for_an_hour_costs_more() {
    let row = r#"{"m": {"input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6,
        "cache_creation_input_token_cost": 3.75e-6, "cache_creation_input_token_cost_above_1hr": 6e-6,
        "cache_read_input_token_cost": 3e-7}}"#;
    let price = Prices::from_litellm(row).unwrap().of(ANTHROPIC, "m").unwrap();
    let usage =
        Usage { input: 1_000, output: 0, cache_read: 400, cache_write: 300, long_cache_write: 100 };
    assert_eq!(price.cost(&usage), 300 * 3 + 120 + 750 + 600);
    assert_eq!(price.most(1_000, 0), 6_000);
    let body = r#"{"type": "message", "usage": {"input_tokens": 3, "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 7, "output_tokens": 2,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}}}"#;
    let mut scanner = paceline_provider::Scanner::of(ANTHROPIC, &http::HeaderMap::new());
    scanner.feed(body.as_bytes());
    let read = scanner.finish().usage.unwrap();
    assert_eq!((read.cache_write, read.long_cache_write), (7, 4));
}

#[test]
fn file_without_prices_is_refused() {
    for (text, reason) in [
        ("[]", "invalid type: sequence"),
        ("{", "EOF"),
        ("{}", "no model has an `input_cost_per_token`"),
        (r#"{"m": {"output_cost_per_image": 1}}"#, "no model has an `input_cost_per_token`"),
        (r#"{"m": {"input_cost_per_token": "much"}}"#, "no model has an `input_cost_per_token`"),
    ] {
        let error = Prices::from_litellm(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let sample: Value = serde_json::from_str(TABLE).unwrap();
    assert!(sample.as_object().is_some_and(|rows| rows.len() > 800));
}
