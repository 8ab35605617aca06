use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::Span;
use crate::quota::Margin;

/// What is given up because requests reach the provider later than they were admitted.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Margin")]
pub(in crate::config) struct MarginFields {
    /// Least share of a token bucket's burst that is given up, in percent: below 100. Default: 2.
    #[schemars(range(min = 0, max = 99))]
    pub(in crate::config) percent: u8,
    /// How much later than admitted a request may arrive: at most 1h. Windows are longer by that.
    /// Default: 500ms.
    pub(in crate::config) lag: Span,
}

impl Default for MarginFields {
    fn default() -> Self {
        Margin::default().into()
    }
}

impl From<Margin> for MarginFields {
    fn from(margin: Margin) -> Self {
        Self { percent: margin.percent(), lag: Span(margin.lag()) }
    }
}
