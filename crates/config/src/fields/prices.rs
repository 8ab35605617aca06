use std::num::NonZeroU64;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::ordered_map::OrderedMap;

/// The prices of models, by which limits in `usd` count. Models without one here have the built-in price.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Prices")]
pub(crate) struct PricesFields {
    /// The path of a file in LiteLLM's format (`model_prices_and_context_window.json`). Relative to the
    /// directory of this file.
    #[schemars(with = "Option<String>", length(min = 1), example = &"prices.json")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// Prices by model, which take precedence over the file.
    pub(crate) models: OrderedMap<PriceFields>,
}

/// The price of a model, in dollars per million tokens. That of a mode has the mode after the name:
/// `claude-opus-5:fast`, `gpt-5:priority`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Price")]
pub(crate) struct PriceFields {
    /// Dollars per million input tokens.
    pub(crate) input: Amount,
    /// Dollars per million output tokens.
    pub(crate) output: Amount,
    /// Dollars per million input tokens that are read from a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read: Option<Amount>,
    /// Dollars per million input tokens that are written to a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<Amount>,
    /// The largest output of a request without `max_tokens`, in tokens. Default: that of the built-in table; a request
    /// is refused where spending is limited if neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(crate) max_output: Option<NonZeroU64>,
    /// The length of the model's context, in tokens: the input that is reserved for a request that refers to content
    /// outside its body. Default: that of the built-in table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(crate) max_input: Option<NonZeroU64>,
}
