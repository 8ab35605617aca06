use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::model_price::Price;
use super::rates::Rates;

/// A model in a file of LiteLLM's format (`model_prices_and_context_window.json`), with its prices in dollars per
/// token, by the names of their fields.
#[derive(Debug)]
pub(super) struct Row(BTreeMap<String, f64>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let prices = fields.into_iter().filter(|(name, _)| name.contains("cost"));
        let prices = prices.filter_map(|(name, value)| Some((name, value.as_f64()?)));
        Ok(Self(prices.collect()))
    }
}

impl Row {
    /// Returns the price of the model's tokens; `None` if it is priced in other units.
    pub(super) fn price(&self) -> Option<Price> {
        self.0.get(INPUT)?;
        let audio = |field| self.rate(field, "");
        let audio_output = audio("output_cost_per_audio_token");
        let mut rates = self.rates("", &Rates::default());
        // The output is text or audio, which a usage doesn't tell apart.
        rates.output = rates.output.max(audio_output.unwrap_or(0));
        let above =
            self.0.keys().filter_map(|name| name.strip_prefix(INPUT)?.strip_prefix("_above_"));
        let mut thresholds: Vec<_> = above.filter_map(threshold).collect();
        thresholds.sort_unstable();
        let long =
            |(tokens, name): (u64, &str)| (tokens, self.rates(&format!("_above_{name}"), &rates));
        Some(Price {
            rates,
            long_prompts: thresholds.into_iter().map(long).collect(),
            audio_input: audio("input_cost_per_audio_token"),
        })
    }

    /// Returns the rates in fields with this suffix, where those that are missing are the `base` ones.
    fn rates(&self, suffix: &str, base: &Rates) -> Rates {
        let input = self.rate(INPUT, suffix).unwrap_or(base.input);
        let other = |field, of_base| self.rate(field, suffix).unwrap_or(input.max(of_base));
        let cache_write = other("cache_creation_input_token_cost", base.cache_write);
        let long = self.rate("cache_creation_input_token_cost_above_1hr", suffix);
        Rates {
            input,
            output: self.rate("output_cost_per_token", suffix).unwrap_or(base.output),
            cache_read: other("cache_read_input_token_cost", base.cache_read),
            cache_write,
            long_cache_write: long.unwrap_or(cache_write.max(base.long_cache_write)),
        }
    }

    /// Returns a price in millionths of a micro-dollar per token.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    fn rate(&self, field: &str, suffix: &str) -> Option<u64> {
        let dollars = *self.0.get(&format!("{field}{suffix}"))?;
        let is_price = (0.0..MAX_DOLLARS).contains(&dollars);
        is_price.then(|| (dollars * RATES_PER_DOLLAR).round() as u64)
    }
}

/// Returns the number of tokens in the suffix of a field, such as `200k_tokens`, and the suffix.
fn threshold(name: &str) -> Option<(u64, &str)> {
    let thousands: u64 = name.strip_suffix("k_tokens")?.parse().ok()?;
    Some((thousands.checked_mul(1_000)?, name))
}

const INPUT: &str = "input_cost_per_token";

const RATES_PER_DOLLAR: f64 = 1e12;

/// The price of a token from which on a value is not a price.
const MAX_DOLLARS: f64 = 1_000.0;
