use std::time::Duration;

use paceline_cluster::{OnFailure, SharingMode};

use super::tls::TlsConfig;
use crate::SecretUrl;

/// Limits that many machines share.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterConfig {
    /// The URL of a server of Redis or Valkey, of nodes of a Redis Cluster, or of Sentinels.
    pub redis: SecretUrl,
    /// The certificates of TLS connections.
    pub tls: TlsConfig,
    /// The account whose limits are shared.
    pub account: String,
    /// The precision with which limits are enforced across machines.
    pub mode: SharingMode,
    /// The policy while the server is unreachable.
    pub on_failure: OnFailure,
    /// The timeout of a response of the server.
    pub timeout: Duration,
    /// Spreads the keys over the nodes of a Redis Cluster.
    pub spread: bool,
    /// The duration of a lease in [`SharingMode::Lease`].
    pub lease: Duration,
    /// The time after which a reservation counts as used if its machine no longer renews it.
    pub reservation_ttl: Duration,
}
