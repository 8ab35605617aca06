//! State across restarts, and between processes of one machine.

mod boot;
mod error;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod go_ratelimit;
mod log;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod migrate;
#[cfg(feature = "sqlite")]
mod sqlite;
mod state;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod store;
mod times;
#[cfg(feature = "yaml")]
mod yaml;

pub use boot::Boot;
pub use error::StoreError;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
pub use migrate::{Kind, MigrateError, Options, Skipped, Summary, migrate};
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use state::State;
pub use store::Store;
#[cfg(feature = "yaml")]
pub use yaml::Yaml;
