use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret_url::SecretUrl;
use super::tls::TlsFields;

/// The bus that announces capacity updates: either `nats` or `redis`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Bus", extend("oneOf" = [
    {"required": ["nats"], "properties": {"nats": {"type": "string"}}},
    {"required": ["redis"], "properties": {"redis": {"type": "string"}}},
]))]
pub(crate) struct BusFields {
    /// The URL of a NATS server (nats, tls, ws, wss).
    #[schemars(extend("examples" = ["nats://127.0.0.1:4222"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nats: Option<SecretUrl>,
    /// The URL of a Redis or Valkey server (redis, unix; with TLS: rediss; valkey and valkeys mean the
    /// same as redis and rediss).
    #[schemars(extend("examples" = ["redis://127.0.0.1:6379"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redis: Option<SecretUrl>,
    /// The certificates of TLS connections. Default: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsFields>,
    /// The name of this program on the bus, which must be unique. Default: the name of the host, the
    /// process ID and a random number.
    #[schemars(length(min = 1, max = 128), example = &"worker-7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
}
