use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::Span;

/// How far a key is reduced when its provider refuses a request, and how it recovers.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Reduction")]
pub(in crate::config) struct ReductionFields {
    /// Whether anything is reduced; if not, a refusal only cools its key down, as long as the
    /// provider asks. Default: true.
    pub(in crate::config) enabled: bool,
    /// What is left of a limit after a refusal: above 0 and below 1. Default: 0.5.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub(in crate::config) factor: f64,
    /// How long it takes to recover by one step: at least 1s. Default: 30s.
    pub(in crate::config) recovery_interval: Span,
    /// What a step of recovery multiplies a limit by: from 1.01 to 1000. Default: 1.1.
    #[schemars(range(min = 1.01, max = 1000))]
    pub(in crate::config) recovery_factor: f64,
    /// By how much a cool-down may be longer than asked for, at random, so that not all who share an
    /// account start again at once. Default: 500ms.
    pub(in crate::config) spread: Span,
}

impl Default for ReductionFields {
    fn default() -> Self {
        Self {
            enabled: true,
            factor: 0.5,
            recovery_interval: Span(Duration::from_secs(30)),
            recovery_factor: 1.1,
            spread: Span(Duration::from_millis(500)),
        }
    }
}
