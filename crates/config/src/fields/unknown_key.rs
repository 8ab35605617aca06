use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The policy for keys without a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "UnknownKey")]
pub(crate) enum UnknownKeyName {
    /// The key is not limited. A warning is logged at its first use.
    Allow,
    /// The request is refused.
    Refuse,
    /// One request is admitted at a time, until the headers of a response state the limits.
    Learn,
}
