use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether requests that fail in passing are sent again.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Retry")]
pub(in crate::config) struct RetryFields {
    /// How often a request is sent at most, the first time included. Default: 1: never again.
    #[schemars(range(min = 1, max = 100))]
    pub(in crate::config) attempts: u32,
}

impl Default for RetryFields {
    fn default() -> Self {
        Self { attempts: 1 }
    }
}
