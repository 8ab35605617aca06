use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::model_price::Price;
use super::rates::Rates;

/// A model in a file of LiteLLM's format (`model_prices_and_context_window.json`), with the numbers of its fields by
/// their names; prices are in dollars per token.
#[derive(Debug)]
pub(super) struct Row {
    numbers: BTreeMap<String, f64>,
    /// The factors by which modes are dearer.
    factors: BTreeMap<String, f64>,
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let numbers = |fields: BTreeMap<String, Value>| {
            let numbers =
                fields.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
            numbers.collect()
        };
        let factors = match fields.get(FACTORS) {
            Some(Value::Object(factors)) => numbers(factors.clone().into_iter().collect()),
            _ => BTreeMap::new(),
        };
        Ok(Self { numbers: numbers(fields), factors })
    }
}

impl Row {
    /// Returns the prices of the model's tokens by mode, of which the first has no name; none if the model is priced
    /// in other units.
    pub(super) fn prices(&self) -> Vec<(&'static str, Price)> {
        let Some(standard) = self.price("") else { return Vec::new() };
        let tiers = TIERS.iter().filter_map(|tier| Some((*tier, self.price(tier)?)));
        let factor = |mode: &&'static str| {
            let factor = self.factors.get(*mode).copied().filter(|factor| *factor >= 1.0)?;
            Some((*mode, standard.times(factor)))
        };
        let mut prices: Vec<_> = tiers.chain(MODES_WITH_FACTOR.iter().filter_map(factor)).collect();
        prices.insert(0, ("", standard));
        prices
    }

    /// Returns the price in a tier of service; `None` if it has none.
    fn price(&self, tier: &str) -> Option<Price> {
        self.rate(INPUT, "", tier)?;
        let dearest_output =
            SPECIAL_OUTPUTS.iter().filter_map(|field| self.rate(field, "", "")).max();
        let standard = self.rates("", "", &Rates::default());
        let output = standard.output.max(dearest_output.unwrap_or(0));
        let mut rates = self.rates("", tier, &Rates { output, ..Rates::default() });
        // The output is text or another medium, which a usage doesn't tell apart.
        rates.output = rates.output.max(dearest_output.unwrap_or(0));
        let above = self
            .numbers
            .keys()
            .filter_map(|name| name.strip_prefix(INPUT)?.strip_prefix("_above_"));
        let mut thresholds: Vec<_> = above.filter_map(threshold).collect();
        thresholds.sort_unstable();
        let long = |(tokens, name): (u64, &str)| {
            let above = format!("_above_{name}");
            let standard = self.rates(&above, "", &rates);
            (tokens, self.rates(&above, tier, &standard))
        };
        let number = |field| self.numbers.get(field).copied().and_then(whole);
        let max_input = number("max_input_tokens");
        let max_output = number("max_output_tokens").or_else(|| number("max_tokens")).or(max_input);
        Some(Price {
            rates,
            long_prompts: thresholds.into_iter().map(long).collect(),
            audio_input: self.rate(AUDIO, "", tier).max(self.rate(AUDIO, "", "")),
            max_input,
            max_output,
        })
    }

    /// Returns the rates in fields with these suffixes, where those that are missing are the `base` ones.
    fn rates(&self, above: &str, tier: &str, base: &Rates) -> Rates {
        let input = self.rate(INPUT, above, tier).unwrap_or(base.input);
        let other = |field, of_base| self.rate(field, above, tier).unwrap_or(input.max(of_base));
        let cache_write = other("cache_creation_input_token_cost", base.cache_write);
        let long = self.rate("cache_creation_input_token_cost_above_1hr", above, tier);
        Rates {
            input,
            output: self.rate("output_cost_per_token", above, tier).unwrap_or(base.output),
            cache_read: other("cache_read_input_token_cost", base.cache_read),
            cache_write,
            long_cache_write: long.unwrap_or(cache_write.max(base.long_cache_write)),
        }
    }

    /// Returns a price in millionths of a micro-dollar per token.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    fn rate(&self, field: &str, above: &str, tier: &str) -> Option<u64> {
        let tier = if tier.is_empty() { String::new() } else { format!("_{tier}") };
        let dollars = *self.numbers.get(&format!("{field}{above}{tier}"))?;
        let is_price = (0.0..MAX_DOLLARS).contains(&dollars);
        is_price.then(|| (dollars * RATES_PER_DOLLAR).round() as u64)
    }
}

/// Returns the number of tokens in the suffix of a field, such as `200k_tokens`, and the suffix.
fn threshold(name: &str) -> Option<(u64, &str)> {
    let thousands: u64 = name.strip_suffix("k_tokens")?.parse().ok()?;
    Some((thousands.checked_mul(1_000)?, name))
}

/// Returns a number of tokens.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
fn whole(number: f64) -> Option<u64> {
    (1.0..MAX_TOKENS).contains(&number).then_some(number as u64)
}

const INPUT: &str = "input_cost_per_token";

const AUDIO: &str = "input_cost_per_audio_token";

/// The prices of output other than text.
const SPECIAL_OUTPUTS: &[&str] =
    &["output_cost_per_audio_token", "output_cost_per_image_token", "output_cost_per_video_token"];

/// The tiers of service with prices of their own, by the suffixes of their fields.
const TIERS: &[&str] = &["flex", "priority", "ultrafast"];

/// The field with the factors of modes.
const FACTORS: &str = "provider_specific_entry";

/// The modes whose price is a factor of the model's: Anthropic's fast mode, and its inference in the US alone.
const MODES_WITH_FACTOR: &[&str] = &["fast", "us"];

const RATES_PER_DOLLAR: f64 = 1e12;

/// The price of a token from which on a value is not a price.
const MAX_DOLLARS: f64 = 1_000.0;

/// The number of tokens from which on a value is not a bound.
const MAX_TOKENS: f64 = 1e12;
