use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::Address;
use super::span::Span;

/// Limits that are shared by many machines.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Cluster")]
pub(in crate::config) struct ClusterFields {
    /// Redis or Valkey: one server (redis, rediss), a Redis Cluster (redis-cluster, with some of its
    /// nodes), or whichever server some Sentinels call the master of a name (redis-sentinel).
    #[schemars(extend("examples" = [
        "redis://127.0.0.1:6379",
        "redis-cluster://10.0.0.1:6379,10.0.0.2:6379",
        "redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster",
    ]))]
    pub(in crate::config) redis: Address,
    /// The account whose limits are shared: all who name the same count together.
    #[schemars(length(min = 1, max = 128), example = &"team-a")]
    pub(in crate::config) account: String,
    /// How exactly. Default: exact.
    #[serde(default)]
    pub(in crate::config) mode: Mode,
    /// What happens while the server can't be reached. Default: `local_share`.
    #[serde(default)]
    pub(in crate::config) on_failure: OnFailure,
    /// How long an answer of the server is waited for: from 1ms to 1m. Default: 50ms.
    #[serde(default = "timeout")]
    pub(in crate::config) timeout: Span,
    /// Whether the keys of the account may lie on different nodes of a Redis Cluster. Default: false:
    /// all lie on one, and a request under several keys is one decision.
    #[serde(default)]
    pub(in crate::config) spread: bool,
    /// In mode `lease`, for how long a machine holds what it was given: from 100ms to 1m. Default: 2s.
    #[serde(default = "lease")]
    pub(in crate::config) lease: Span,
    /// How long the reservation of a request is kept that nobody renews, since its machine is gone:
    /// from 1s to 1h. Default: 1m.
    #[serde(default = "reservation_ttl")]
    pub(in crate::config) reservation_ttl: Span,
}

/// How exactly a shared limit is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ClusterMode")]
#[non_exhaustive]
pub enum Mode {
    /// One atomic decision a request, made by the server.
    #[default]
    Exact,
    /// Each machine holds a part of the limit for a short while, and decides within it by itself.
    Lease,
}

/// What happens while the server of a shared limit can't be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing is let in.
    Closed,
    /// Everything is let in.
    Open,
    /// Each machine goes on with its share: the limit by the number of live members.
    #[default]
    LocalShare,
}

fn timeout() -> Span {
    Span(Duration::from_millis(50))
}

fn lease() -> Span {
    Span(Duration::from_secs(2))
}

fn reservation_ttl() -> Span {
    Span(Duration::from_secs(60))
}
