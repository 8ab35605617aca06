//! State in a human-readable YAML file, for one process. Use `sqlite` for state shared by several
//! processes.
//!
//! [`Yaml`] documents the format.

mod boot_time;
mod bucket_usage;
mod document;
mod file;
mod key_usage;
mod lock;
mod nesting;
mod store;
mod stored_learned;
mod stored_quota;
mod stored_utilization;
mod text;

#[cfg(feature = "sqlite")]
pub(super) use nesting::is_too_deep;
pub use store::Yaml;
