use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::compact::NOBODY;
use super::fault::Fault;
use super::name::Name;
use super::turn::Turn;
use super::{load, schema};
use crate::limiter::{KeyChanges, NamedQuota};
use crate::store::State;
use crate::store::times::Origin;

/// A database that a limiter has joined in.
#[derive(Debug)]
pub(super) struct Joined {
    db: Connection,
    origin: Origin,
    /// After how long others take this owner for dead, in nanoseconds.
    dead_after: u64,
    owner: i64,
    known: Known,
}

/// What the owner knows of the database; of a transaction that fails it knows nothing.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The number of the last thing that the owner has seen.
    seen: i64,
    /// What it holds, and what it was told that all others hold.
    held: BTreeMap<Name, u64>,
    told: BTreeMap<Name, u64>,
    /// The quotas that it answers for.
    quotas: BTreeSet<String>,
    /// When it last said that it is alive.
    beat_at: u64,
    /// How much was written down since the file was last made small.
    written: i64,
}

impl Joined {
    /// Opens the database, and joins in.
    pub(super) fn join(
        path: &Path,
        origin: Origin,
        dead_after: u64,
        now: u64,
    ) -> Result<(Self, State), Fault> {
        let mut db = schema::open(path)?;
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut turn = Turn::begin(&tx, &origin, NOBODY, now)?;
        turn.pull_back()?;
        turn.bury_the_dead()?;
        let quotas = turn.inherited()?;
        turn.join(dead_after)?;
        turn.compact()?;
        turn.end()?;
        // It is due at once: what others hold is yet to be told.
        let known = Known { seen: turn.seq, beat_at: 0, quotas, ..Known::default() };
        let owner = turn.owner;
        drop(turn);
        let state = load::state(&tx, &origin, now)?;
        tx.commit()?;
        let joined = Self { db, origin, dead_after, owner, known };
        joined.make_small()?;
        Ok((joined, state))
    }

    /// Writes down what changed, and tells what others did since.
    pub(super) fn sync(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: u64,
    ) -> Result<Vec<KeyChanges>, Fault> {
        let is_due = self.known.beat_at.abs_diff(now) >= self.dead_after / 4;
        if changes.is_empty() && quotas.is_none() && !is_due && !self.is_news()? {
            return Ok(Vec::new());
        }
        let mut known = self.known.clone();
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut turn = Turn::begin(&tx, &self.origin, self.owner, now)?;
        if !turn.is_alive(self.owner)? {
            turn.rise(self.dead_after, known.seen)?;
            turn.hold_again(&known.held)?;
        }
        turn.write(changes, &mut known.held)?;
        if let Some(quotas) = quotas {
            turn.write_quotas(quotas, &mut known.quotas)?;
        }
        if is_due {
            turn.bury_the_dead()?;
        }
        let others = turn.others(known.seen, &mut known.told)?;
        known.written += turn.seq - known.seen;
        (known.seen, known.beat_at) = (turn.seq, now);
        turn.beat()?;
        let is_long = known.written >= COMPACT_EVERY;
        if is_long {
            turn.compact()?;
            known.written = 0;
        }
        turn.end()?;
        drop(turn);
        tx.commit()?;
        self.known = known;
        if is_long {
            self.make_small()?;
        }
        Ok(others)
    }

    /// Leaves: what the owner holds counts as taken.
    pub(super) fn leave(&mut self, now: u64) -> Result<(), Fault> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut turn = Turn::begin(&tx, &self.origin, self.owner, now)?;
        turn.take_held(self.owner, now, false)?;
        turn.forget(self.owner)?;
        turn.end()?;
        drop(turn);
        Ok(tx.commit()?)
    }

    /// Whether others wrote anything down that the owner hasn't seen.
    fn is_news(&self) -> Result<bool, Fault> {
        let mut counter = self.db.prepare_cached("SELECT seq FROM counter")?;
        let seq: i64 = counter.query_row([], |row| row.get(0))?;
        Ok(seq != self.known.seen)
    }

    /// Gives room in the file back to the disk.
    fn make_small(&self) -> Result<(), Fault> {
        Ok(self.db.execute_batch("PRAGMA incremental_vacuum")?)
    }
}

/// After how many entries, of all owners together, the file is made small.
const COMPACT_EVERY: i64 = 4_096;
