use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Retries of transient failures.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Retry")]
pub(crate) struct RetryFields {
    /// The maximum number of attempts of a request, including the first, from 1 to 100. Default: 1, no
    /// retries.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) attempts: u32,
}

impl Default for RetryFields {
    fn default() -> Self {
        Self { attempts: 1 }
    }
}
