//! State in a SQLite database, which several processes of one machine may share.
//!
//! What a limiter takes is appended, in one transaction for each [`sync`](Store::sync), and each
//! other limiter reads what it hasn't seen: two never overwrite each other's usage. What is held in
//! flight is known by owner: if one dies, what it held counts as taken, and if it was only asleep, it
//! takes that back. The file stays small: what counts no longer is deleted, and entries of about the
//! same time become one, of the latest of their times.
//!
//! The database is in WAL mode, and each transaction is on the disk before it counts: `kill -9`
//! loses what had not been synced, and never the file. A file that is damaged, or another program's,
//! is left as it is.
//!
//! It doesn't decide what is admitted (the limiter does), when to write
//! ([`Persistence`](super::Persistence) does), or share quota exactly: others learn what was taken with the
//! next sync. It doesn't work on network file systems.
//!
//! ```
//! use std::time::Duration;
//! use tollgate::store::{Persistence, Sqlite};
//! use tollgate::{Cost, Limiter, Quota};
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
//! drop(limiter); // writes down what it did last
//!
//! let limiter = start()?; // the next run, or another process
//! assert!(limiter.try_acquire("gpt-4o", &Cost::new()).is_err(), "the day is used up");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket_id;
mod compact;
mod database_error;
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
mod write;

#[cfg(feature = "yaml")]
pub(super) use schema::immutable_uri;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::TransactionBehavior;

use super::clock_origin::ClockOrigin;
use super::error::StoreError;
use super::state::State;
use super::store::Store;
use crate::limiter::{Boot, KeyChanges, NamedQuota};
use crate::timestamp::Timestamp;
use database_error::{DatabaseError, DatabaseProblem};
use owner_transaction::OwnerTransaction;
use session::Session;

/// A SQLite database as a [`Store`], which several processes of one machine may share: each appends
/// what it took, hears from the others with every sync, and never writes over theirs. What a process
/// that died held counts as taken.
///
/// Each sync is one transaction, on the disk before it counts. The file stays small: what counts no
/// longer is deleted, and entries of about the same time become one. A file that is damaged, newer, or
/// another program's is refused and left as it is. Not for network file systems.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    boot: Option<Boot>,
    flush: Duration,
    session: Option<Session>,
}

impl Sqlite {
    /// The database at `path`, which is made when it is opened if it isn't there, with the folders
    /// it is in.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), boot: None, flush: SECOND, session: None }
    }

    /// What the database at `path` keeps, with what those who have it open hold; its times set right
    /// for `now`, and for a clock that was set where `boot` is known.
    /// Doesn't join in, and makes and changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if there is no such file, and for a database that isn't ours.
    pub fn peek(path: &Path, now: Timestamp, boot: Option<Boot>) -> Result<State, StoreError> {
        let peek = || {
            let db = schema::peek(path)?;
            // One moment for all tables.
            let tx = db.unchecked_transaction()?;
            let mut state = load::state(&tx, &ClockOrigin::new(boot, now), now)?;
            replace::add_held(&tx, &mut state)?;
            Ok(state)
        };
        peek().map_err(|error: DatabaseError| error.at(path))
    }

    /// Forgets at `now` what was taken of a key, or of all keys that the database at `path` knows:
    /// whoever has it open does so too.
    ///
    /// # Errors
    /// [`StoreError`] as [`peek`](Self::peek), or if it can't be written.
    pub fn reset(
        path: &Path,
        key: Option<&str>,
        now: Timestamp,
        boot: Option<Boot>,
    ) -> Result<(), StoreError> {
        let reset = || {
            schema::peek(path)?;
            Self::owner_tx(path, now, boot, |owner_tx| match key {
                Some(key) => owner_tx.reset_from_outside(key),
                None => owner_tx.reset_all(),
            })
        };
        reset().map_err(|error| error.at(path))
    }

    /// Puts `state` in the place of all that the database at `path` keeps, which is made if it isn't
    /// there: the second time changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if it can't be written, or isn't ours. Nothing was changed.
    pub fn replace(
        path: &Path,
        state: &State,
        now: Timestamp,
        boot: Option<Boot>,
    ) -> Result<(), StoreError> {
        Self::owner_tx(path, now, boot, |owner_tx| owner_tx.replace_all(state))
            .map_err(|error| error.at(path))
    }

    /// One transaction of nobody's.
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
        let others = self.session().and_then(|session| {
            session.origin = origin;
            session.sync(changes, quotas, now)
        });
        others.map_err(|error| error.at(&self.path))
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.leave(now).map_err(|error| error.at(&self.path))?;
        self.session = None;
        Ok(())
    }
}

const SECOND: Duration = Duration::from_secs(1);
