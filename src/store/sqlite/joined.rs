use std::collections::BTreeMap;
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
    pub(super) origin: Origin,
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
    /// The quotas that it answers for, as it has written or read them.
    quotas: BTreeMap<String, String>,
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
        Ok((Self { db, origin, dead_after, owner, known }, state))
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
        if known.written >= COMPACT_EVERY {
            turn.compact()?;
            known.written = 0;
        }
        turn.end()?;
        drop(turn);
        tx.commit()?;
        self.known = known;
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
}

/// After how many entries, of all owners together, the file is made small.
const COMPACT_EVERY: i64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::BucketChanges;
    use crate::quota::{Dimension, Window};

    const NOW: u64 = 1_767_225_600_000_000_000;

    fn changes(keys: std::ops::Range<u32>) -> Vec<KeyChanges> {
        let change = |n| {
            let mut change = KeyChanges::new(format!("a key of some length, number {n}"));
            let bucket = BucketChanges::new(Dimension::Requests, Window::DAY, vec![(NOW, 1)], 0);
            change.buckets.push(bucket);
            change
        };
        keys.map(change).collect()
    }

    /// A database of a hundred keys, and what a `PRAGMA` makes of it.
    fn fails(fault: &str, mended: &str, reason: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let (mut joined, _) = Joined::join(&path, Origin::default(), 1 << 60, NOW).unwrap();
        joined.sync(&changes(0..100), None, NOW).unwrap();
        joined.db.execute_batch(fault).unwrap();
        for _ in 0..2 {
            let error = joined.sync(&changes(100..5_000), None, NOW).unwrap_err().at(&path);
            assert!(error.to_string().ends_with(reason), "{error}");
            assert!(error.to_string().contains("state.db: "), "{error}");
        }
        let kept = load::state(&joined.db, &Origin::default(), NOW).unwrap();
        assert_eq!(kept.keys.len(), 100, "nothing of what failed");
        joined.db.execute_batch(mended).unwrap();
        joined.sync(&changes(100..5_000), None, NOW).unwrap();
        let kept = load::state(&joined.db, &Origin::default(), NOW).unwrap();
        assert_eq!(kept.keys.len(), 5_000);
        let check: String =
            joined.db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    }

    #[test]
    fn a_full_disk_is_said_so_and_when_there_is_room_again_all_is_written() {
        let (full, room) = ("PRAGMA max_page_count = 30", "PRAGMA max_page_count = 1000000");
        fails(full, room, "the disk is full; free some space");
    }

    #[test]
    fn a_database_that_may_not_be_written_is_said_so_and_written_when_it_may() {
        let reason = "cannot be written; check the permissions of the file and its directory";
        fails("PRAGMA query_only = 1", "PRAGMA query_only = 0", reason);
    }
}
