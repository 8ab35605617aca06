use std::time::Duration;

use crate::config::{Address, Mode, OnFailure};

/// Limits that are shared by many machines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cluster {
    /// The server of Redis or Valkey, the nodes of its Cluster, or its Sentinels.
    pub redis: Address,
    /// The account whose limits are shared.
    pub account: String,
    /// How exactly.
    pub mode: Mode,
    /// What happens while the server can't be reached.
    pub on_failure: OnFailure,
    /// How long an answer of the server is waited for.
    pub timeout: Duration,
    /// Whether keys may lie on different nodes of a Redis Cluster.
    pub spread: bool,
    /// For how long a machine holds what it was given, in [`Mode::Lease`].
    pub lease: Duration,
    /// How long a reservation is kept that nobody renews.
    pub reservation_ttl: Duration,
}
