//! State in a YAML file: for one process, and for people to read.
//!
//! Doesn't share: see `sqlite` for that. The format stands at [`Yaml`].

mod boot_time;
mod bucket_usage;
mod document;
mod file;
mod key_usage;
mod lock;
mod store;
mod stored_quota;
mod text;

pub use store::Yaml;
