//! What a valid configuration says.

mod bus;
mod cluster;
mod configured_quota;
mod retry;
mod storage;
mod waiting;

pub use bus::{Bus, BusPlace};
pub use cluster::Cluster;
pub use configured_quota::{ConfiguredQuota, Keys};
pub use retry::Retry;
pub use storage::{Storage, StoragePlace};
pub use waiting::Waiting;
