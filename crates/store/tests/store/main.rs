//! State across restarts and between processes.

mod files;
mod go_ratelimit;
mod learned;
mod migrate;
mod never_reset;
mod persistence;
mod persistence_end;
mod processes;
mod restarts;
mod sqlite;
mod sqlite_faults;
mod sqlite_owners;
mod sqlite_size;
mod states;
mod utilization;
mod yaml;
mod yaml_broken;
mod yaml_persistence;
#[cfg(unix)]
mod yaml_processes;
mod yaml_properties;
