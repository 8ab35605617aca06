use std::time::Duration;

use paceline_cluster::{OnFailure, SharingMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::human_duration::HumanDuration;
use super::secret_url::SecretUrl;
use super::tls::TlsFields;

/// Limits that many machines share through Redis or Valkey.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Cluster")]
pub(crate) struct ClusterFields {
    /// The URL of Redis or Valkey: one server (redis, unix), some nodes of a Redis Cluster
    /// (redis-cluster), or Sentinels and the name of a master (redis-sentinel). With TLS: rediss,
    /// rediss-cluster, rediss-sentinel. valkey and valkeys mean the same as redis and rediss.
    #[schemars(extend("examples" = [
        "redis://127.0.0.1:6379",
        "redis-cluster://10.0.0.1:6379,10.0.0.2:6379",
        "redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster",
    ]))]
    pub(crate) redis: SecretUrl,
    /// The certificates of TLS connections. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsFields>,
    /// The account whose limits are shared: all machines with the same account count together.
    #[schemars(length(min = 1, max = 128), example = &"team-a")]
    pub(crate) account: String,
    /// The precision with which limits are enforced across machines. Default: `exact`.
    #[serde(default)]
    pub(crate) mode: SharingMode,
    /// The policy while the server is unreachable. Default: `local_share`.
    #[serde(default)]
    pub(crate) on_failure: OnFailure,
    /// The timeout of a response of the server, from 1ms to 1m. Default: 50ms.
    #[serde(default = "timeout")]
    pub(crate) timeout: HumanDuration,
    /// Spreads the keys of the account over the nodes of a Redis Cluster. Default: false: all keys are
    /// on one node, and a request with several keys is one atomic decision.
    #[serde(default)]
    pub(crate) spread: bool,
    /// The duration of a lease in mode `lease`, from 100ms to 1m. Default: 2s.
    #[serde(default = "lease")]
    pub(crate) lease: HumanDuration,
    /// The time after which a reservation counts as used if its machine no longer renews it, from 1s to
    /// 1h. Default: 1m.
    #[serde(default = "reservation_ttl")]
    pub(crate) reservation_ttl: HumanDuration,
}

fn timeout() -> HumanDuration {
    HumanDuration(Duration::from_millis(50))
}

fn lease() -> HumanDuration {
    HumanDuration(Duration::from_secs(2))
}

fn reservation_ttl() -> HumanDuration {
    HumanDuration(Duration::from_secs(60))
}
