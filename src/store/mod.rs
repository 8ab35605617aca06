//! State across restarts, and between processes of one machine.

mod error;
mod keeping;
mod log;
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

pub use crate::limiter::Boot;
pub use error::StoreError;
pub use keeping::Keeping;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use state::State;
pub use status::Status;
pub use store::Store;
#[cfg(feature = "yaml")]
pub use yaml::Yaml;
