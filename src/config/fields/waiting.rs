use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::human_duration::HumanDuration;

/// The bounds of queues.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Waiting")]
pub(in crate::config) struct WaitingFields {
    /// The maximum number of requests that wait for one key; further requests are refused. Default:
    /// 10000.
    #[schemars(range(max = u32::MAX))]
    pub(in crate::config) max_waiting: u32,
    /// The maximum time that a request waits; a request that would have to wait longer is refused
    /// immediately. Default: unbounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) max_wait: Option<HumanDuration>,
}

impl Default for WaitingFields {
    fn default() -> Self {
        Self { max_waiting: 10_000, max_wait: None }
    }
}
