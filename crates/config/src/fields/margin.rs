use paceline_limiter::quota::Margin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::human_duration::HumanDuration;

/// Capacity that is left unused because requests reach the provider later than they are admitted.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Margin")]
pub(crate) struct MarginFields {
    /// The minimum part of a token bucket's burst that is left unused, in percent from 0 to 99. Default: 2.
    #[schemars(range(min = 0, max = 99))]
    pub(crate) percent: u8,
    /// The longest expected delay between admission and arrival at the provider, at most 1h, by which
    /// windows are prolonged. Default: 500ms.
    pub(crate) lag: HumanDuration,
}

impl Default for MarginFields {
    fn default() -> Self {
        Margin::default().into()
    }
}

impl From<Margin> for MarginFields {
    fn from(margin: Margin) -> Self {
        Self { percent: margin.percent(), lag: HumanDuration(margin.lag()) }
    }
}
