//! State in a SQLite database, which several processes of one machine may share.
//!
//! Each [`sync`](Store::sync) appends a limiter's usage in one transaction, and reads the entries
//! of other limiters that it has not seen, so that processes never overwrite each other's usage.
//! Held amounts are stored per owner: if an owner dies, they count as used, and if it was only
//! suspended, it takes them back. The file stays small: expired entries are deleted, and entries of
//! about the same time are merged, at the latest of their times.
//!
//! The database is in WAL mode, and a transaction is on disk before it counts: `kill -9` loses only
//! changes that were not synced, and never corrupts the file. A file that is corrupt, or belongs to
//! another program, is left unchanged.
//!
//! The limiter decides about requests, and [`Persistence`](crate::Persistence) about the time of
//! writes. Limits are not shared exactly: other processes read usage at the next sync. The database
//! must not be on a network file system.
//!
//! ```
//! use std::time::Duration;
//! use paceline_store::{Persistence, Sqlite};
//! use paceline_limiter::{Cost, Limiter, Quota};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("state.db");
//! let start = || -> Result<Limiter, Box<dyn std::error::Error>> {
//!     let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpd(1)).build()?;
//!     Persistence::start(&limiter, Sqlite::new(&path), Duration::from_secs(1))?;
//!     Ok(limiter)
//! };
//! let limiter = start()?;
//! drop(limiter.try_acquire("gpt-4o", &Cost::new())?);
//! drop(limiter); // writes the last changes
//!
//! let limiter = start()?; // the next run, or another process
//! assert!(limiter.try_acquire("gpt-4o", &Cost::new()).is_err(), "the day is used up");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket_id;
mod compact;
mod database_error;
mod file_identity;
mod learned;
mod load;
mod net_usage;
mod owner_transaction;
mod owners;
mod process;
mod quota_text;
mod quotas;
mod read;
mod replace;
mod schema;
mod session;
mod utilization;
mod write;

pub(super) use schema::immutable_uri;

use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Boot, KeyChanges, NamedQuota};
use rusqlite::TransactionBehavior;

use crate::clock_origin::ClockOrigin;
use crate::error::StoreError;
use crate::state::State;
use crate::store::Store;
use database_error::{DatabaseError, DatabaseProblem};
use owner_transaction::OwnerTransaction;
use session::Session;

/// A SQLite database as a [`Store`], which several processes of one machine may share. Each process
/// appends its usage and reads that of the others with every sync; amounts held by a process that
/// died count as used.
///
/// Each sync is one transaction, which is on disk before it counts. The file stays small: expired
/// entries are deleted, and entries of about the same time are merged. A file that is corrupt,
/// newer, or belongs to another program is refused and left unchanged. Not for network file
/// systems.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    boot: Option<Boot>,
    flush: Duration,
    session: Option<Session>,
}

impl Sqlite {
    /// Creates a store for the database at `path`. Opening it creates the file and its directories
    /// if they are missing. Only the owner may read a new file and those that SQLite keeps beside it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), boot: None, flush: SECOND, session: None }
    }

    /// Reads the state of the database at `path`, with the amounts that open processes hold. Times of
    /// usage in the future are clamped to `now`. If `boot` is known, times are also corrected for changes of the
    /// clock since they were written. Does not register as an owner, and creates and changes no file.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the file is missing or is not a paceline database.
    pub fn peek(path: &Path, now: Timestamp, boot: Option<Boot>) -> Result<State, StoreError> {
        let peek = || {
            let db = schema::peek(path)?;
            // Read all tables in one transaction.
            let tx = db.unchecked_transaction()?;
            let mut state = load::state(&tx, &ClockOrigin::new(boot, now), now)?;
            replace::add_held(&tx, &mut state)?;
            Ok(state)
        };
        peek().map_err(|error: DatabaseError| error.at(path))
    }

    /// Resets the usage of a key, or of all keys, in the database at `path`. Processes that have it
    /// open reset their usage too.
    ///
    /// # Errors
    /// Returns [`StoreError`] in the cases of [`peek`](Self::peek), and if the database can't be
    /// written.
    pub fn reset(
        path: &Path,
        key: Option<&str>,
        now: Timestamp,
        boot: Option<Boot>,
    ) -> Result<(), StoreError> {
        let reset = || {
            schema::peek(path)?;
            Self::owner_tx(path, now, boot, |owner_tx| match key {
                Some(key) => owner_tx.reset_now(key),
                None => owner_tx.reset_all(),
            })
        };
        reset().map_err(|error| error.at(path))
    }

    /// Replaces the state of the database at `path`, which is created if it is missing. Repeating
    /// the call changes nothing.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the file can't be written or is not a paceline database; the file is
    /// then unchanged.
    pub fn replace(
        path: &Path,
        state: &State,
        now: Timestamp,
        boot: Option<Boot>,
    ) -> Result<(), StoreError> {
        Self::owner_tx(path, now, boot, |owner_tx| owner_tx.replace_all(state))
            .map_err(|error| error.at(path))
    }

    /// Runs a transaction that belongs to no owner.
    fn owner_tx(
        path: &Path,
        now: Timestamp,
        boot: Option<Boot>,
        act: impl FnOnce(&mut OwnerTransaction<'_>) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let mut db = schema::open(path)?;
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let origin = ClockOrigin::new(boot, now);
        let mut owner_tx = OwnerTransaction::begin(&tx, &origin, compact::NO_OWNER, now)?;
        act(&mut owner_tx)?;
        owner_tx.end()?;
        drop(owner_tx);
        Ok(tx.commit()?)
    }

    fn session(&mut self) -> Result<&mut Session, DatabaseError> {
        self.session.as_mut().ok_or(DatabaseError::DatabaseProblem(DatabaseProblem::NotOpen))
    }
}

impl Store for Sqlite {
    fn set_boot(&mut self, boot: Option<Boot>) {
        self.boot = boot;
    }

    fn set_flush(&mut self, flush: Duration) {
        self.flush = flush;
    }

    fn open(&mut self, now: Timestamp) -> Result<State, StoreError> {
        let origin = ClockOrigin::new(self.boot, now);
        let dead_after = self.flush.saturating_mul(10).max(5 * SECOND);
        let session = Session::join(&self.path, origin, dead_after, now);
        let (session, state) = session.map_err(|error| error.at(&self.path))?;
        self.session = Some(session);
        Ok(state)
    }

    fn sync(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: Timestamp,
    ) -> Result<Vec<KeyChanges>, StoreError> {
        let origin = ClockOrigin::new(self.boot, now);
        let path = self.path.clone();
        let others = self.session().and_then(|session| {
            session.check(&path)?;
            session.origin = origin;
            session.sync(changes, quotas, now)
        });
        others.map_err(|error| error.at(&path))
    }

    fn check(&mut self) -> Result<(), StoreError> {
        let Some(session) = &self.session else { return Ok(()) };
        session.check(&self.path).map_err(|error| error.at(&self.path))
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.leave(now).map_err(|error| error.at(&self.path))?;
        self.session = None;
        Ok(())
    }
}

const SECOND: Duration = Duration::from_secs(1);
