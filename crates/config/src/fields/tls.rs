use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The certificates of TLS connections, as PEM files. Paths are relative to the directory of this file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Tls", extend("dependentRequired" = {"cert": ["key"], "key": ["cert"]}))]
pub(crate) struct TlsFields {
    /// The certificates of the authorities to trust, in place of the system's.
    #[schemars(with = "Option<String>", length(min = 1), example = &"ca.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
    /// The certificate of this client, with its chain.
    #[schemars(with = "Option<String>", length(min = 1), example = &"client.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of this client.
    #[schemars(with = "Option<String>", length(min = 1), example = &"client-key.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<PathBuf>,
}
