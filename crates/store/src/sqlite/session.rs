use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{KeyChanges, NamedQuota};
use rusqlite::{Connection, TransactionBehavior};

use super::bucket_id::BucketId;
use super::compact::NO_OWNER;
use super::database_error::DatabaseError;
use super::file_identity::FileIdentity;
use super::owner_transaction::OwnerTransaction;
use super::{load, schema};
use crate::State;
use crate::clock_origin::ClockOrigin;

/// A limiter's session with the database, from open to close.
#[derive(Debug)]
pub(super) struct Session {
    db: Connection,
    file: FileIdentity,
    pub(super) origin: ClockOrigin,
    /// The time without a heartbeat after which other processes declare this owner dead.
    dead_after: Duration,
    owner: i64,
    state: SessionState,
}

/// The state of the database as last read and written by the owner. A failed transaction leaves it
/// unchanged.
#[derive(Debug, Clone, Default)]
struct SessionState {
    /// The last sequence number that the owner has read.
    seen: i64,
    /// The amounts that this owner holds, and those that all others hold.
    held: BTreeMap<BucketId, u64>,
    others_held: BTreeMap<BucketId, u64>,
    /// The quotas that this owner is responsible for, as last written or read.
    quotas: BTreeMap<String, String>,
    /// The time of the last heartbeat.
    heartbeat_at: Timestamp,
    /// The number of entries written since the last compaction.
    written: i64,
}

impl Session {
    /// Opens the database, and registers as an owner.
    pub(super) fn join(
        path: &Path,
        origin: ClockOrigin,
        dead_after: Duration,
        now: Timestamp,
    ) -> Result<(Self, State), DatabaseError> {
        let mut db = schema::open(path)?;
        let file = FileIdentity::of(path)?;
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut owner_tx = OwnerTransaction::begin(&tx, &origin, NO_OWNER, now)?;
        owner_tx.clamp_future_times()?;
        owner_tx.reap_dead_processes()?;
        let quotas = owner_tx.inherited_quotas()?;
        owner_tx.join(dead_after)?;
        owner_tx.compact()?;
        owner_tx.end()?;
        // With the heartbeat at 0, the next sync is due immediately, and reads held amounts of others.
        let state = SessionState {
            seen: owner_tx.seq,
            heartbeat_at: Timestamp::UNIX_EPOCH,
            quotas,
            ..SessionState::default()
        };
        let owner = owner_tx.owner;
        drop(owner_tx);
        let stored = load::state(&tx, &origin, now)?;
        tx.commit()?;
        Ok((Self { db, file, origin, dead_after, owner, state }, stored))
    }

    /// Checks that the file is still at `path`.
    pub(super) fn check(&self, path: &Path) -> Result<(), DatabaseError> {
        self.file.check(path)
    }

    /// Writes changes, and returns those of other owners since the last sync.
    pub(super) fn sync(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: Timestamp,
    ) -> Result<Vec<KeyChanges>, DatabaseError> {
        let is_due = self.state.heartbeat_at.abs_diff(now) >= self.dead_after / 4;
        if changes.is_empty() && quotas.is_none() && !is_due && !self.has_unseen_changes()? {
            return Ok(Vec::new());
        }
        let mut state = self.state.clone();
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut owner_tx = OwnerTransaction::begin(&tx, &self.origin, self.owner, now)?;
        if !owner_tx.is_alive(self.owner)? {
            owner_tx.resume(self.dead_after, state.seen)?;
            owner_tx.rewrite_held(&state.held)?;
        }
        owner_tx.write(changes, &mut state.held)?;
        if let Some(quotas) = quotas {
            owner_tx.write_quotas(quotas, &mut state.quotas)?;
        }
        if is_due {
            owner_tx.reap_dead_processes()?;
        }
        let others = owner_tx.read_changes(state.seen, &mut state.others_held)?;
        state.written += owner_tx.seq - state.seen;
        (state.seen, state.heartbeat_at) = (owner_tx.seq, now);
        owner_tx.heartbeat()?;
        if state.written >= COMPACT_EVERY {
            owner_tx.compact()?;
            state.written = 0;
        }
        owner_tx.end()?;
        drop(owner_tx);
        tx.commit()?;
        self.state = state;
        Ok(others)
    }

    /// Ends the session: amounts that the owner holds count as used.
    pub(super) fn leave(&mut self, now: Timestamp) -> Result<(), DatabaseError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut owner_tx = OwnerTransaction::begin(&tx, &self.origin, self.owner, now)?;
        owner_tx.charge_held(self.owner, now, false)?;
        owner_tx.delete_owner(self.owner)?;
        owner_tx.end()?;
        drop(owner_tx);
        Ok(tx.commit()?)
    }

    /// Returns whether there are changes that this owner has not read.
    fn has_unseen_changes(&self) -> Result<bool, DatabaseError> {
        let mut counter = self.db.prepare_cached("SELECT seq FROM counter")?;
        let seq: i64 = counter.query_row([], |row| row.get(0))?;
        Ok(seq != self.state.seen)
    }
}

/// The number of entries, of all owners, after which the file is compacted.
const COMPACT_EVERY: i64 = 4_096;

#[cfg(test)]
mod tests {
    use paceline_limiter::limiter::BucketChanges;
    use paceline_limiter::quota::{Dimension, Window};

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_secs(1_767_225_600);

    fn changes(keys: std::ops::Range<u32>) -> Vec<KeyChanges> {
        let change = |n| {
            let mut change = KeyChanges::new(format!("a key of some length, number {n}"));
            let bucket = BucketChanges::new(Dimension::Requests, Window::DAY, vec![(NOW, 1)], 0);
            change.buckets.push(bucket);
            change
        };
        keys.map(change).collect()
    }

    /// Asserts that a sync fails with `reason` after the pragma `fault`, and succeeds after `repair`.
    fn assert_failure(fault: &str, repair: &str, reason: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let (mut session, _) =
            Session::join(&path, ClockOrigin::default(), Duration::from_nanos(1 << 60), NOW)
                .unwrap();
        session.sync(&changes(0..100), None, NOW).unwrap();
        session.db.execute_batch(fault).unwrap();
        for _ in 0..2 {
            let error = session.sync(&changes(100..5_000), None, NOW).unwrap_err().at(&path);
            assert!(error.to_string().ends_with(reason), "{error}");
            assert!(error.to_string().contains("state.db: "), "{error}");
        }
        let kept = load::state(&session.db, &ClockOrigin::default(), NOW).unwrap();
        assert_eq!(kept.keys.len(), 100, "a failed sync stores no change");
        session.db.execute_batch(repair).unwrap();
        session.sync(&changes(100..5_000), None, NOW).unwrap();
        let kept = load::state(&session.db, &ClockOrigin::default(), NOW).unwrap();
        assert_eq!(kept.keys.len(), 5_000);
        let check: String =
            session.db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    }

    #[test]
    fn full_disk_is_reported_and_writes_resume() {
        let (full, enough) = ("PRAGMA max_page_count = 30", "PRAGMA max_page_count = 1000000");
        assert_failure(full, enough, "the disk is full; free some space");
    }

    #[test]
    fn read_only_database_is_reported_and_writes_resume() {
        let reason = "cannot be written; check the permissions of the file and its directory";
        assert_failure("PRAGMA query_only = 1", "PRAGMA query_only = 0", reason);
    }
}
