//! State across restarts and between processes.

mod files;
pub(crate) mod go_ratelimit;
mod keeping;
mod keeping_end;
mod migrate;
mod processes;
mod restarts;
mod sqlite;
mod sqlite_faults;
mod sqlite_owners;
mod sqlite_size;
mod states;
mod yaml;
mod yaml_broken;
mod yaml_keeping;
#[cfg(unix)]
mod yaml_processes;
mod yaml_properties;
