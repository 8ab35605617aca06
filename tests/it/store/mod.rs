//! State across restarts.

#[cfg(feature = "yaml")]
mod states;
#[cfg(feature = "yaml")]
mod yaml;
#[cfg(feature = "yaml")]
mod yaml_broken;
#[cfg(all(feature = "yaml", unix))]
mod yaml_processes;
#[cfg(feature = "yaml")]
mod yaml_properties;
