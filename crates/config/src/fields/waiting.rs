use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::human_duration::HumanDuration;
use super::ordered_map::OrderedMap;
use super::priority::PriorityText;
use super::wait_bound::WaitBound;

/// The bounds and the order of queues.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Waiting")]
pub(crate) struct WaitingFields {
    /// The maximum number of requests that wait for one key; further requests are refused. Default:
    /// 10000.
    #[schemars(range(max = u32::MAX))]
    pub(crate) max_waiting: u32,
    /// The maximum time that a request waits; a request that would have to wait longer is refused
    /// immediately. `unlimited` sets no maximum. Default: 4m in the server, otherwise unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_wait: Option<WaitBound>,
    /// The priorities of waiting requests by key: the name of a key, a glob (`tenant:nightly-*`), or
    /// `regex:` and a regular expression that must match the whole key. Of several matches, the first one
    /// in the file counts. Default: normal.
    #[serde(skip_serializing_if = "is_empty")]
    pub(crate) bands: OrderedMap<PriorityText>,
    /// The kind of keys that share limits fairly: with `tenant`, the requests of each key `tenant:NAME`
    /// get an equal share of service while they wait. Default: none; requests of one priority go in order
    /// of arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"tenant")]
    pub(crate) fair_by: Option<String>,
    /// The weights of such keys: one with weight 2 gets twice the service of one with weight 1. Default:
    /// `weight` of the key's quota, or 1.
    #[serde(skip_serializing_if = "is_empty")]
    pub(crate) weights: OrderedMap<u32>,
    /// The time after which a lower priority gets one turn although requests with a higher one wait.
    /// Default: 30s.
    pub(crate) max_starvation: HumanDuration,
}

fn is_empty<T>(map: &OrderedMap<T>) -> bool {
    map.0.is_empty()
}

impl Default for WaitingFields {
    fn default() -> Self {
        Self {
            max_waiting: 10_000,
            max_wait: None,
            bands: OrderedMap::default(),
            fair_by: None,
            weights: OrderedMap::default(),
            max_starvation: HumanDuration(Duration::from_secs(30)),
        }
    }
}
