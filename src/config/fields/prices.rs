use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::ordered_map::OrderedMap;

/// The prices of models, by which limits in `usd` count. Models without one here have the built-in price.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Prices")]
pub(in crate::config) struct PricesFields {
    /// The path of a file in LiteLLM's format (`model_prices_and_context_window.json`). Relative to the
    /// directory of this file.
    #[schemars(with = "Option<String>", length(min = 1), example = &"prices.json")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) file: Option<PathBuf>,
    /// Prices by model, which take precedence over the file.
    pub(in crate::config) models: OrderedMap<PriceFields>,
}

/// The price of a model, in dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Price")]
pub(in crate::config) struct PriceFields {
    /// Dollars per million input tokens.
    pub(in crate::config) input: Amount,
    /// Dollars per million output tokens.
    pub(in crate::config) output: Amount,
    /// Dollars per million input tokens that are read from a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::config) cache_read: Option<Amount>,
    /// Dollars per million input tokens that are written to a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::config) cache_write: Option<Amount>,
}
