use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::human_duration::HumanDuration;

/// The reduction of limits after the provider refuses a request, and their recovery.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Reduction")]
pub(crate) struct ReductionFields {
    /// Reduces limits after a refusal. If false, the key only cools down for as long as the provider
    /// asks. Default: true.
    pub(crate) enabled: bool,
    /// Measures the provider's limits by its answers, as without this section. Reductions then apply only
    /// to refusals that a program reports itself, and to those that other programs announce. Default: false.
    pub(crate) adaptive: bool,
    /// Tests a Retry-After of more than 5s by one request after 2s, with measured limits: if it is accepted,
    /// long delays of the key are ignored from then on. If false, every delay is obeyed. Default: true.
    pub(crate) probe_retry_after: bool,
    /// The factor by which a refusal multiplies a limit: above 0 and below 1. Default: 0.5.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub(crate) factor: f64,
    /// The interval between two steps of recovery: at least 1s. Default: 30s.
    pub(crate) recovery_interval: HumanDuration,
    /// The factor by which a step of recovery multiplies a limit: from 1.01 to 1000. Default: 1.1.
    #[schemars(range(min = 1.01, max = 1000))]
    pub(crate) recovery_factor: f64,
    /// The maximum of the random time that is added to a cool-down, so that the users of an account
    /// don't all resume at the same moment. Default: 500ms.
    pub(crate) spread: HumanDuration,
}

impl Default for ReductionFields {
    fn default() -> Self {
        Self {
            enabled: true,
            adaptive: false,
            probe_retry_after: true,
            factor: 0.5,
            recovery_interval: HumanDuration(Duration::from_secs(30)),
            recovery_factor: 1.1,
            spread: HumanDuration(Duration::from_millis(500)),
        }
    }
}
