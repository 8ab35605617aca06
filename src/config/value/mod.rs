//! The values of a valid configuration.

mod bus;
mod cluster;
mod configured_quota;
mod retry;
mod storage;
mod waiting;

pub use bus::{Bus, BusServer};
pub use cluster::Cluster;
pub use configured_quota::{ConfiguredQuota, Keys};
pub use retry::Retry;
pub use storage::{Storage, StorageFile};
pub use waiting::Waiting;
