use super::tls::TlsConfig;
use crate::SecretUrl;

/// The bus that announces capacity updates.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusConfig {
    /// The server.
    pub server: BusServer,
    /// The certificates of TLS connections.
    pub tls: TlsConfig,
    /// The name of this program on the bus. Without one, it consists of the host name, the process ID and
    /// a random number.
    pub agent_id: Option<String>,
}

/// The server of a bus.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusServer {
    /// NATS.
    Nats(SecretUrl),
    /// Redis or Valkey.
    Redis(SecretUrl),
}
