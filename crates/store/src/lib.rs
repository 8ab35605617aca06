//! State across restarts, and between processes of one machine.
//!
//! A [`Store`] saves the usage, holds and learned quotas of a limiter: `Yaml` in a file for one
//! process, `Sqlite` in a database that several processes may share. [`Persistence`] connects a
//! limiter to a store: it writes changes at every flush interval and when the limiter closes, and
//! reads those of other processes. After `kill -9`, changes since the last flush are lost.
//!
//! Sharing is not exact: processes that share a database read each other's usage at the next flush,
//! and together may exceed a limit by the amounts that they admit until then. Queued requests are not
//! saved. Amounts held at the end of a run count as used, and concurrency slots become free. Stores
//! don't coordinate several machines; the package `paceline-cluster` does.
//!
//! ```
//! # #[cfg(feature = "sqlite")] {
//! use std::time::Duration;
//! use paceline_store::{Persistence, Sqlite};
//! use paceline_limiter::{Cost, Limiter, Quota};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("state.db");
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpd(10_000)).build()?;
//! let persistence = Persistence::start(&limiter, Sqlite::new(path), Duration::from_secs(1))?;
//!
//! drop(limiter.try_acquire("gpt-4o", &Cost::new())?);
//! persistence.flush_now()?; // or wait a second
//! assert_eq!(persistence.status().trouble, None);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock_origin;
mod dimension;
mod error;
#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod go_ratelimit;
#[cfg(feature = "sqlite")]
mod migrate;
mod pending_changes;
mod persistence;
mod private_file;
mod refilling;
mod regular_file;
#[cfg(feature = "sqlite")]
mod sqlite;
mod state;
mod status;
mod store;
mod yaml;

pub use error::StoreError;
#[cfg(feature = "sqlite")]
pub use file::{peek, reset};
#[cfg(feature = "sqlite")]
pub use migrate::{
    FileKind, MigrateError, MigrateOptions, MigrateSummary, SkippedEntries, migrate,
};
pub use persistence::Persistence;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use state::State;
pub use status::StoreStatus;
pub use store::Store;
pub use yaml::Yaml;

/// Returns the longest wait of a quota in nanoseconds, as stores keep it; at most `u64::MAX`, which is 584 years.
fn nanos(wait: std::time::Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
