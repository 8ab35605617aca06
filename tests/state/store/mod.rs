//! State across restarts, and between processes.

#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod files;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
pub(crate) mod go_ratelimit;
#[cfg(feature = "sqlite")]
mod keeping;
#[cfg(feature = "sqlite")]
mod keeping_end;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod migrate;
#[cfg(feature = "sqlite")]
mod processes;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod restarts;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_faults;
#[cfg(feature = "sqlite")]
mod sqlite_owners;
#[cfg(feature = "sqlite")]
mod sqlite_size;
#[cfg(feature = "yaml")]
mod states;
#[cfg(feature = "yaml")]
mod yaml;
#[cfg(feature = "yaml")]
mod yaml_broken;
#[cfg(feature = "yaml")]
mod yaml_keeping;
#[cfg(all(feature = "yaml", unix))]
mod yaml_processes;
#[cfg(feature = "yaml")]
mod yaml_properties;
