use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::Span;

/// Who may wait for capacity, and how long.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Waiting")]
pub(in crate::config) struct WaitingFields {
    /// How many requests may wait for one key; one more is refused. Default: 10000.
    #[schemars(range(max = u32::MAX))]
    pub(in crate::config) max_waiting: u32,
    /// How long a request may wait; one that would have to wait longer is refused at once. Default: no
    /// bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) max_wait: Option<Span>,
}

impl Default for WaitingFields {
    fn default() -> Self {
        Self { max_waiting: 10_000, max_wait: None }
    }
}
