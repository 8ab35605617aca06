use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::RefusalKind;
use rusqlite::{OptionalExtension, Transaction, params};

use super::bucket_id::BucketId;
use super::database_error::DatabaseError;
use crate::clock_origin::{ClockOrigin, signed, stored};
use crate::dimension;

/// A transaction of one owner, with the state that its statements share.
pub(super) struct OwnerTransaction<'a> {
    pub(super) tx: &'a Transaction<'a>,
    /// The current time by the owner's clock.
    pub(super) now: Timestamp,
    pub(super) origin: &'a ClockOrigin,
    /// The ids of the owner's clock and of the owner.
    pub(super) clock: i64,
    pub(super) owner: i64,
    pub(super) clocks: BTreeMap<i64, ClockOrigin>,
    /// The last sequence number.
    pub(super) seq: i64,
}

impl<'a> OwnerTransaction<'a> {
    pub(super) fn begin(
        tx: &'a Transaction<'a>,
        origin: &'a ClockOrigin,
        owner: i64,
        now: Timestamp,
    ) -> Result<Self, DatabaseError> {
        let mut clocks = clocks(tx)?;
        let same = |(id, other): (&i64, &ClockOrigin)| {
            let same = other.boot == origin.boot && origin.ahead_of(other) == 0;
            same.then_some(*id)
        };
        let clock = match clocks.iter().find_map(same) {
            Some(id) => id,
            None => {
                let row = params![origin.boot, origin.offset];
                tx.execute("INSERT INTO clocks (boot, start) VALUES (?1, ?2)", row)?;
                let id = tx.last_insert_rowid();
                clocks.insert(id, origin.clone());
                id
            }
        };
        let seq = tx.query_row("SELECT seq FROM counter", [], |row| row.get(0))?;
        Ok(Self { tx, now, origin, clock, owner, clocks, seq })
    }

    /// Returns the next sequence number.
    pub(super) fn next(&mut self) -> i64 {
        self.seq += 1;
        self.seq
    }

    /// Stores the last sequence number.
    pub(super) fn end(&self) -> Result<(), DatabaseError> {
        self.tx.prepare_cached("UPDATE counter SET seq = ?1")?.execute([self.seq])?;
        Ok(())
    }

    /// Converts a time from the clock of a row to this clock; never later than now.
    pub(super) fn read(&self, at: Timestamp, clock: i64) -> Timestamp {
        self.origin.read(at, self.clock_of(clock), self.now)
    }

    pub(super) fn clock_of(&self, clock: i64) -> &ClockOrigin {
        self.clocks.get(&clock).unwrap_or(self.origin)
    }

    /// Records usage of a bucket by `owner`; a negative amount is a refund.
    pub(super) fn add_usage(
        &mut self,
        bucket: i64,
        owner: i64,
        at: Timestamp,
        amount: i64,
    ) -> Result<(), DatabaseError> {
        self.add_usages(bucket, owner, &[(at, amount)])
    }

    /// Records usage at several times.
    pub(super) fn add_usages(
        &mut self,
        bucket: i64,
        owner: i64,
        taken: &[(Timestamp, i64)],
    ) -> Result<(), DatabaseError> {
        let sql = "INSERT INTO usage (seq, bucket, owner, clock, at, amount) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = self.tx.prepare_cached(sql)?;
        for &(at, amount) in taken {
            let seq = self.next();
            insert.execute(params![seq, bucket, owner, self.clock, stored(at), amount])?;
        }
        let mut total = self.tx.prepare_cached("SELECT total FROM buckets WHERE id = ?1")?;
        let total: i64 = total.query_row([bucket], |row| row.get(0))?;
        let total = taken.iter().fold(total, |total, entry| total.saturating_add(entry.1));
        let sql = "UPDATE buckets SET total = ?2, touched = max(touched, ?3) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![bucket, total, stored(self.now)])?;
        Ok(())
    }

    /// Stores the refill of a bucket per window.
    pub(super) fn set_refill(&self, bucket: i64, refill: u64) -> Result<(), DatabaseError> {
        let sql = "UPDATE buckets SET refill = ?2 WHERE id = ?1 AND refill <> ?2";
        self.tx.prepare_cached(sql)?.execute([bucket, signed(refill)])?;
        Ok(())
    }

    /// Returns the id of a bucket, which is created if needed.
    pub(super) fn bucket_id(&self, name: &BucketId) -> Result<i64, DatabaseError> {
        let dimension = dimension::write(&name.dimension);
        let row = params![name.key.as_str(), dimension, signed(name.window.as_nanos())];
        let sql = "SELECT id FROM buckets WHERE key = ?1 AND dimension = ?2 AND window_ns = ?3";
        let there = self.tx.prepare_cached(sql)?.query_row(row, |row| row.get(0)).optional()?;
        if let Some(id) = there {
            return Ok(id);
        }
        let sql = "INSERT INTO buckets (key, dimension, window_ns) VALUES (?1, ?2, ?3)";
        Ok(self.tx.prepare_cached(sql)?.insert(row)?)
    }
}

/// Reads a time from a column.
pub(super) fn time(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_nanos)
}

/// Reads the kind of a refusal from a column; one of a later version is unknown.
pub(super) fn kind(
    row: &rusqlite::Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<RefusalKind>> {
    let name: Option<String> = row.get(column)?;
    Ok(name.and_then(|name| RefusalKind::named(&name)))
}

pub(super) fn clocks(
    db: &rusqlite::Connection,
) -> Result<BTreeMap<i64, ClockOrigin>, DatabaseError> {
    let mut rows = db.prepare_cached("SELECT id, boot, start FROM clocks")?;
    let clock = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, ClockOrigin { boot: row.get(1)?, offset: row.get(2)? }))
    };
    Ok(rows.query_map([], clock)?.collect::<Result<_, _>>()?)
}
