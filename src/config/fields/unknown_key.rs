use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a key without a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "UnknownKey")]
pub(in crate::config) enum UnknownKeyName {
    /// It isn't limited; the first time, that is logged.
    Allow,
    /// It is refused.
    Refuse,
    /// One request at a time, until the headers of a response tell its limits.
    Learn,
}
