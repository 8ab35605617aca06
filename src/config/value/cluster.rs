use std::time::Duration;

use crate::config::{Address, Mode, OnFailure};

/// Limits that are shared by many machines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cluster {
    /// The Redis or Valkey server.
    pub redis: Address,
    /// The account whose limits are shared.
    pub account: String,
    /// How exactly.
    pub mode: Mode,
    /// What happens while the server can't be reached.
    pub on_failure: OnFailure,
    /// How long an answer of the server is waited for.
    pub timeout: Duration,
}
