//! The values of a valid configuration.

mod bus;
mod cluster;
mod configured_quota;
mod retry;
mod store;
mod tls;
mod waiting;

pub use bus::{BusConfig, BusServer};
pub use cluster::ClusterConfig;
pub use configured_quota::{ConfiguredQuota, Keys};
pub use retry::RetryConfig;
pub use store::{StoreConfig, StoreFile};
pub use tls::TlsConfig;
pub use waiting::WaitingConfig;
