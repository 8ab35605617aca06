//! State across restarts, and between processes of one machine.
//!
//! A [`Store`] keeps what a limiter has taken, holds and has learned: `Yaml` in a file of one process,
//! `Sqlite` in a database that several may share. [`Persistence`] keeps a limiter in one: what it did is
//! written down in every flush interval and at its end, and what others did is taken over. `kill -9`
//! loses what was done since the last flush.
//!
//! It doesn't share quota exactly: processes that share a database hear of each other with the next
//! flush, and may together go over a limit by what they admit until then. Who waits, and who is in
//! flight, isn't kept: what was held at the end of a run counts as taken, and requests in flight end
//! with it. It knows no other machine.
//!
//! ```
//! # #[cfg(feature = "sqlite")] {
//! use std::time::Duration;
//! use tollgate::store::{Persistence, Sqlite};
//! use tollgate::{Cost, Limiter, Quota};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("state.db");
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpd(10_000)).build()?;
//! let keeping = Persistence::start(&limiter, Sqlite::new(path), Duration::from_secs(1))?;
//!
//! drop(limiter.try_acquire("gpt-4o", &Cost::new())?);
//! keeping.flush_now()?; // or wait a second
//! assert_eq!(keeping.status().trouble, None);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock_origin;
mod dimension;
mod error;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod file;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod go_ratelimit;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
mod migrate;
mod pending_changes;
mod persistence;
#[cfg(any(feature = "yaml", feature = "sqlite"))]
mod refilling;
#[cfg(feature = "sqlite")]
mod sqlite;
mod state;
mod status;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod store;
#[cfg(feature = "yaml")]
mod yaml;

pub use error::StoreError;
#[cfg(all(feature = "yaml", feature = "sqlite"))]
pub use file::{peek, reset};
#[cfg(all(feature = "yaml", feature = "sqlite"))]
pub use migrate::{
    FileKind, MigrateError, MigrateOptions, MigrateSummary, SkippedEntries, migrate,
};
pub use persistence::Persistence;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use state::State;
pub use status::StoreStatus;
pub use store::Store;
#[cfg(feature = "yaml")]
pub use yaml::Yaml;
