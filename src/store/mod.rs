//! State across restarts, and between processes of one machine.

mod error;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod file;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod go_ratelimit;
mod keeping;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod migrate;
mod pending;
#[cfg(feature = "sqlite")]
mod sqlite;
mod state;
mod status;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod store;
mod times;
#[cfg(feature = "yaml")]
mod yaml;

pub use error::StoreError;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
pub use file::{peek, reset};
pub use keeping::Keeping;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
pub use migrate::{Kind, MigrateError, Options, Skipped, Summary, migrate};
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use state::State;
pub use status::Status;
pub use store::Store;
#[cfg(feature = "yaml")]
pub use yaml::Yaml;
