use std::path::Path;

use paceline::price::Prices;
use paceline::provider::{ANTHROPIC, GEMINI, OPENAI};
use paceline::quota::{Usage, Usd};
use paceline_simulate::{SimulatedUsage, SpendLimit};

/// Returns a limit on spending at the built-in prices, or at those of a file in LiteLLM's format.
pub(super) fn spend_limit(limit: Usd, prices: Option<&Path>) -> Result<SpendLimit, String> {
    let prices = prices.map_or_else(|| Ok(Prices::built_in()), read)?;
    Ok(SpendLimit::new(limit.as_micros(), move |api, model, usage| {
        let provider = match api {
            "anthropic" => ANTHROPIC,
            "gemini" => GEMINI,
            _ => OPENAI,
        };
        prices.of(provider, model).map(|price| price.cost(&priced(usage)))
    }))
}

fn read(path: &Path) -> Result<Prices, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: cannot read: {error}", path.display()))?;
    Prices::from_litellm(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn priced(usage: &SimulatedUsage) -> Usage {
    let SimulatedUsage { input, output, cache_read, cache_write } = *usage;
    Usage { input, output, cache_read, cache_write, ..Usage::default() }
}
