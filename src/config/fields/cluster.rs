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
    /// The URL of a Redis or Valkey server (redis, rediss).
    #[schemars(extend("examples" = ["redis://127.0.0.1:6379"]))]
    pub(in crate::config) redis: Address,
    /// The account whose limits are shared: all who name the same count together.
    #[schemars(length(min = 1), example = &"team-a")]
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
}

/// What happens while the server of a shared limit can't be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
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
