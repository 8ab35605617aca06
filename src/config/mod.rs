//! The configuration: one file of YAML, the environment and flags over it, and values that are valid.

mod applied;
mod apply;
mod build;
mod check;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod config;
mod error;
mod fields;
mod load;
mod read;
mod schema;
mod tree;
mod value;
mod watch;
mod watched;

pub use applied::Applied;
pub use config::Config;
pub use error::{ConfigError, Problem};
pub use fields::{Address, Mode, OnFailure, ServeMode};
pub use load::{LoadOptions, Loaded, Override, check, load};
pub use schema::schema;
pub use tree::{Origin, Position};
pub use value::{
    Bus, Cluster, ConfiguredQuota, KeyLimit, Keys, Retry, Scope, Serve, Storage, StoragePlace,
    Upstream, Waiting,
};
pub use watch::Watch;
pub use watched::Watched;
