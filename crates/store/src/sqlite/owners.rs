use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::seam::nanos;
use rusqlite::{OptionalExtension, Row, params};

use super::database_error::DatabaseError;
use super::owner_transaction::{OwnerTransaction, time};
use super::process;
use crate::clock_origin::{shifted, signed, stored};

/// The owners of the database: one for each limiter that has it open.
impl OwnerTransaction<'_> {
    /// Registers a new owner that has read all entries.
    pub(super) fn join(&mut self, dead_after: Duration) -> Result<(), DatabaseError> {
        let sql = "INSERT INTO owners (process, clock, dead_after, seen_at, seen_seq) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let (after, now) = (signed(nanos(dead_after)), stored(self.now));
        self.tx.execute(sql, params![process::current(), self.clock, after, now, self.seq])?;
        self.owner = self.tx.last_insert_rowid();
        Ok(())
    }

    /// Records that the owner is alive and has read all entries. Returns `false` if it has been
    /// declared dead.
    pub(super) fn heartbeat(&self) -> Result<bool, DatabaseError> {
        let sql = "UPDATE owners SET seen_at = ?2, seen_seq = ?3, clock = ?4 \
                   WHERE id = ?1 AND buried_at IS NULL";
        let row = params![self.owner, stored(self.now), self.seq, self.clock];
        Ok(self.tx.prepare_cached(sql)?.execute(row)? == 1)
    }

    /// Resumes an owner that was declared dead: its amounts are held again, and no longer count as
    /// used.
    pub(super) fn resume(&mut self, dead_after: Duration, seen: i64) -> Result<(), DatabaseError> {
        let sql = "SELECT bucket, clock, at, amount FROM buried WHERE owner = ?1";
        let mut rows = self.tx.prepare(sql)?;
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, time(row, 2)?, row.get(3)?));
        let charged: Vec<(i64, i64, Timestamp, i64)> =
            rows.query_map([self.owner], row)?.collect::<Result<_, _>>()?;
        for (bucket, clock, at, amount) in charged {
            let at = self.read(at, clock);
            self.add_usage(bucket, self.owner, at, amount.saturating_neg())?;
        }
        self.tx.execute("DELETE FROM buried WHERE owner = ?1", [self.owner])?;
        let sql = "INSERT OR REPLACE INTO owners (id, process, clock, dead_after, seen_at, seen_seq) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (after, now) = (signed(nanos(dead_after)), stored(self.now));
        let row = params![self.owner, process::current(), self.clock, after, now, seen];
        self.tx.execute(sql, row)?;
        Ok(())
    }

    /// Declares owners dead if their process has ended or their last heartbeat is too old. Their held
    /// amounts then count as used at the last heartbeat.
    pub(super) fn reap_dead_processes(&mut self) -> Result<(), DatabaseError> {
        let sql = "SELECT id, process, clock, dead_after, seen_at, buried_at FROM owners \
                   WHERE id <> ?1";
        let mut rows = self.tx.prepare_cached(sql)?;
        let others: Vec<OtherOwner> =
            rows.query_map([self.owner], OtherOwner::read)?.collect::<Result<_, _>>()?;
        for other in others {
            self.reap(&other)?;
        }
        Ok(())
    }

    fn reap(&mut self, other: &OtherOwner) -> Result<(), DatabaseError> {
        let boot = &self.clock_of(other.clock).boot;
        let is_of_another_boot =
            boot.is_some() && self.origin.boot.is_some() && *boot != self.origin.boot;
        let has_ended =
            is_of_another_boot || other.process.as_deref().is_some_and(process::has_ended);
        let seen = shifted(other.seen_at, self.origin.ahead_of(self.clock_of(other.clock)));
        let is_overdue = self.now.abs_diff(seen) > other.dead_after;
        if other.buried_at.is_none() && (has_ended || is_overdue) {
            self.charge_held(other.id, seen.min(self.now), !has_ended)?;
            let sql = "UPDATE owners SET buried_at = ?2 WHERE id = ?1";
            self.tx.execute(sql, params![other.id, stored(self.now)])?;
        }
        let is_too_old = other.buried_at.is_some_and(|at| self.now.abs_diff(at) > RESUME_WITHIN);
        if has_ended || is_too_old {
            self.delete_owner(other.id)?;
        }
        Ok(())
    }

    /// Converts the amounts that an owner holds to usage at `at`; if the owner may resume, records
    /// the conversion.
    pub(super) fn charge_held(
        &mut self,
        owner: i64,
        at: Timestamp,
        may_resume: bool,
    ) -> Result<(), DatabaseError> {
        let sql = "SELECT bucket, amount, dimension FROM held JOIN buckets ON id = bucket \
                   WHERE owner = ?1";
        let mut rows = self.tx.prepare_cached(sql)?;
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let held: Vec<(i64, i64, String)> =
            rows.query_map([owner], row)?.collect::<Result<_, _>>()?;
        for (bucket, amount, dimension) in held {
            if dimension == "concurrency" {
                continue;
            }
            self.add_usage(bucket, owner, at, amount)?;
            if may_resume {
                let sql = "INSERT OR REPLACE INTO buried (owner, bucket, clock, at, amount) \
                           VALUES (?1, ?2, ?3, ?4, ?5)";
                let row = params![owner, bucket, self.clock, stored(at), amount];
                self.tx.execute(sql, row)?;
            }
        }
        // A new sequence number makes other owners read that the amounts are no longer held.
        self.next();
        self.tx.execute("DELETE FROM held WHERE owner = ?1", [owner])?;
        Ok(())
    }

    /// Deletes an owner that can't resume.
    pub(super) fn delete_owner(&self, owner: i64) -> Result<(), DatabaseError> {
        self.tx.execute("DELETE FROM buried WHERE owner = ?1", [owner])?;
        self.tx.execute("DELETE FROM owners WHERE id = ?1", [owner])?;
        Ok(())
    }

    /// Returns whether an owner is registered and not declared dead.
    pub(super) fn is_alive(&self, owner: i64) -> Result<bool, DatabaseError> {
        let sql = "SELECT 1 FROM owners WHERE id = ?1 AND buried_at IS NULL";
        Ok(self.tx.prepare_cached(sql)?.query_row([owner], |_| Ok(())).optional()?.is_some())
    }
}

struct OtherOwner {
    id: i64,
    process: Option<String>,
    clock: i64,
    dead_after: Duration,
    seen_at: Timestamp,
    buried_at: Option<Timestamp>,
}

impl OtherOwner {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            process: row.get(1)?,
            clock: row.get(2)?,
            dead_after: row.get(3).map(Duration::from_nanos)?,
            seen_at: time(row, 4)?,
            buried_at: row.get::<_, Option<_>>(5)?.map(Timestamp::from_nanos),
        })
    }
}

/// The time during which a dead owner may resume: long enough for a laptop that is suspended over a
/// holiday.
const RESUME_WITHIN: Duration = Duration::from_secs(31 * 86_400);
