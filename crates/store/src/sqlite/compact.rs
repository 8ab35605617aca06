use std::collections::BTreeMap;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::seam;
use rusqlite::{Row, params};

use super::database_error::DatabaseError;
use super::net_usage::net_usage;
use super::owner_transaction::{OwnerTransaction, time};
use crate::clock_origin::{signed, stored};
use crate::refilling::outstanding;

/// Returns the time for which usage of a window is kept, in nanoseconds. On a calendar, usage may count
/// for longer than the nominal window: a month of 31 days, a day of 25 hours.
pub(super) const fn kept_for(window: u64) -> u64 {
    window.saturating_add(window / 16).saturating_add(60_000_000_000)
}

/// Compaction, which keeps the file small.
impl OwnerTransaction<'_> {
    /// Deletes expired usage, and merges entries of about the same time.
    pub(super) fn compact(&self) -> Result<(), DatabaseError> {
        self.prune_usage()?;
        self.prune_refilling_usage()?;
        self.merge_entries()?;
        self.prune_unreferenced()?;
        // Returns free pages to the file system.
        Ok(self.tx.execute_batch("PRAGMA incremental_vacuum")?)
    }

    /// Clamps times in the future, by this clock, to now, and stores the result. Otherwise, each opening
    /// would clamp them to a later time.
    pub(super) fn clamp_future_times(&self) -> Result<(), DatabaseError> {
        for (&id, clock) in &self.clocks {
            let now = stored(self.now).saturating_sub(self.origin.ahead_of(clock));
            for table in ["usage", "resets"] {
                let sql = format!("UPDATE {table} SET at = ?2 WHERE clock = ?1 AND at > ?2");
                self.tx.execute(&sql, [id, now])?;
            }
            let sql = "UPDATE cooling SET until = until - noted_at + ?2, noted_at = ?2 \
                       WHERE clock = ?1 AND noted_at > ?2";
            self.tx.execute(sql, [id, now])?;
        }
        Ok(())
    }

    fn prune_usage(&self) -> Result<(), DatabaseError> {
        let mut windows = self.tx.prepare("SELECT DISTINCT window_ns FROM buckets")?;
        let windows: Vec<u64> =
            windows.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let sql = "DELETE FROM usage WHERE at < ?1 AND clock = ?2 AND bucket IN \
                   (SELECT id FROM buckets WHERE window_ns = ?3 AND refill = 0)";
        let mut delete = self.tx.prepare(sql)?;
        for window in windows {
            for (&id, clock) in &self.clocks {
                let now = stored(self.now).saturating_sub(self.origin.ahead_of(clock));
                let past = now.saturating_sub(signed(kept_for(window)));
                delete.execute([past, id, signed(window)])?;
            }
        }
        Ok(())
    }

    /// Merges usage of refilled buckets that is older than a window into one entry, which counts
    /// until it has refilled.
    fn prune_refilling_usage(&self) -> Result<(), DatabaseError> {
        let sql = "SELECT bucket, refill, window_ns, seq, at, amount \
                   FROM usage JOIN buckets ON id = bucket WHERE clock = ?2 AND refill > 0 \
                   AND at < ?1 - (window_ns + window_ns / 16 + 60000000000)";
        let mut rows = self.tx.prepare(sql)?;
        let mut past: BTreeMap<i64, (u64, u64, PastUsage)> = BTreeMap::new();
        for (&id, clock) in &self.clocks {
            let now = stored(self.now).saturating_sub(self.origin.ahead_of(clock));
            let mut rows = rows.query([now, id])?;
            while let Some(row) = rows.next()? {
                let (_, _, past) = past.entry(row.get(0)?).or_insert((
                    row.get(1)?,
                    row.get(2)?,
                    PastUsage::default(),
                ));
                past.seqs.push(row.get(3)?);
                past.taken.push((self.read(time(row, 4)?, id), row.get(5)?));
            }
        }
        for (bucket, (refill, window, past)) in past {
            let next = self.next_usage(bucket, seam::sub_nanos(self.now, kept_for(window)))?;
            self.replace_past(past, refill, window, next)?;
        }
        Ok(())
    }

    /// Returns the time of the first usage of a bucket at or after `after`, or the current time if there
    /// is none.
    fn next_usage(&self, bucket: i64, after: Timestamp) -> Result<Timestamp, DatabaseError> {
        let mut rows = self.tx.prepare_cached("SELECT at, clock FROM usage WHERE bucket = ?1")?;
        let mut rows = rows.query([bucket])?;
        let mut next = self.now;
        while let Some(row) = rows.next()? {
            let at = self.read(time(row, 0)?, row.get(1)?);
            next = if at >= after { next.min(at) } else { next };
        }
        Ok(next)
    }

    fn replace_past(
        &self,
        mut past: PastUsage,
        refill: u64,
        window: u64,
        next: Timestamp,
    ) -> Result<(), DatabaseError> {
        let remaining = outstanding(&net_usage(past.taken, window).taken, refill, window, next);
        past.seqs.sort_unstable();
        // Keep the first sequence number: an owner that has read part of these entries must not
        // read the merged one.
        let [first, merged @ ..] = &past.seqs[..] else { return Ok(()) };
        if remaining.is_some() && merged.is_empty() {
            return Ok(());
        }
        let mut delete = self.tx.prepare_cached("DELETE FROM usage WHERE seq = ?1")?;
        for seq in merged {
            delete.execute([seq])?;
        }
        let Some((at, amount)) = remaining else {
            delete.execute([first])?;
            return Ok(());
        };
        let sql = "UPDATE usage SET owner = ?2, clock = ?3, at = ?4, amount = ?5 WHERE seq = ?1";
        let row = params![first, NO_OWNER, self.clock, stored(at), signed(amount)];
        self.tx.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    fn merge_entries(&self) -> Result<(), DatabaseError> {
        let mut seen = self.tx.prepare("SELECT DISTINCT seen_seq FROM owners ORDER BY seen_seq")?;
        let seen: Vec<i64> = seen.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let sql = "SELECT bucket, window_ns FROM usage JOIN buckets ON id = bucket \
                   GROUP BY bucket HAVING count(*) > ?1";
        let mut long = self.tx.prepare(sql)?;
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let long: Vec<(i64, u64)> =
            long.query_map([PARTS_PER_WINDOW], row)?.collect::<Result<_, _>>()?;
        for (bucket, window) in long {
            self.merge_bucket(bucket, (window / PARTS_PER_WINDOW).max(1), &seen)?;
        }
        Ok(())
    }

    /// Merges the entries of a bucket within each `step`, at the latest of their times.
    ///
    /// An entry that an owner has read is never merged with one that it hasn't read, since that owner
    /// would read the sum again, or not at all. Entries that some owner hasn't read are merged per
    /// writer.
    fn merge_bucket(&self, bucket: i64, step: u64, seen: &[i64]) -> Result<(), DatabaseError> {
        let sql = "SELECT seq, owner, clock, at, amount FROM usage WHERE bucket = ?1 ORDER BY seq";
        let mut rows = self.tx.prepare_cached(sql)?;
        let mut rows = rows.query([bucket])?;
        let mut groups: BTreeMap<(usize, i64, i64, u64), MergedEntries> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let (seq, owner, at): (i64, i64, _) = (row.get(0)?, row.get(1)?, time(row, 3)?);
            let unseen = seen.partition_point(|seen| *seen < seq);
            let owner = if unseen == 0 { NO_OWNER } else { owner };
            let merged_entries =
                groups.entry((unseen, owner, row.get(2)?, at.as_nanos() / step)).or_default();
            merged_entries.rows.push(seq);
            merged_entries.at = merged_entries.at.max(at);
            merged_entries.amount = merged_entries.amount.saturating_add(row.get(4)?);
        }
        for ((_, owner, ..), merged_entries) in groups {
            self.replace_entries(owner, &merged_entries)?;
        }
        Ok(())
    }

    fn replace_entries(
        &self,
        owner: i64,
        merged_entries: &MergedEntries,
    ) -> Result<(), DatabaseError> {
        let [merged @ .., last] = &merged_entries.rows[..] else { return Ok(()) };
        if merged.is_empty() {
            return Ok(());
        }
        let mut delete = self.tx.prepare_cached("DELETE FROM usage WHERE seq = ?1")?;
        for seq in merged {
            delete.execute([seq])?;
        }
        if merged_entries.amount == 0 {
            delete.execute([last])?;
            return Ok(());
        }
        let sql = "UPDATE usage SET owner = ?2, at = ?3, amount = ?4 WHERE seq = ?1";
        let row = params![last, owner, stored(merged_entries.at), merged_entries.amount];
        self.tx.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// Deletes rows that are no longer referenced or needed.
    fn prune_unreferenced(&self) -> Result<(), DatabaseError> {
        let past = stored(self.now - DELETE_AFTER);
        let sql = "DELETE FROM buckets WHERE touched < ?1 \
                   AND NOT EXISTS (SELECT 1 FROM usage WHERE bucket = id) \
                   AND id NOT IN (SELECT bucket FROM held) \
                   AND id NOT IN (SELECT bucket FROM buried)";
        self.tx.execute(sql, [past])?;
        self.tx.execute("DELETE FROM resets WHERE at < ?1", [past])?;
        self.tx.execute("DELETE FROM cooling WHERE max(until, noted_at) < ?1", [past])?;
        self.prune_learned()?;
        self.prune_utilization()?;
        let sql = "DELETE FROM clocks WHERE id <> ?1 AND id NOT IN (SELECT clock FROM usage \
                   UNION SELECT clock FROM owners UNION SELECT clock FROM buried \
                   UNION SELECT clock FROM cooling UNION SELECT clock FROM resets \
                   UNION SELECT clock FROM learned UNION SELECT clock FROM utilization)";
        self.tx.execute(sql, [self.clock])?;
        Ok(())
    }
}

/// The usage of a bucket that is older than its window.
#[derive(Default)]
struct PastUsage {
    seqs: Vec<i64>,
    taken: Vec<(Timestamp, i64)>,
}

/// Entries to be merged into one.
#[derive(Default)]
struct MergedEntries {
    rows: Vec<i64>,
    at: Timestamp,
    amount: i64,
}

/// The owner id of usage that every owner has read.
pub(super) const NO_OWNER: i64 = 0;

/// The number of parts of a window, each of which is merged into one entry. Merging prolongs the
/// window by less than 0.5 %.
const PARTS_PER_WINDOW: u64 = 256;

/// The time after which an unused key is deleted with its totals.
const DELETE_AFTER: Duration = Duration::from_secs(31 * 86_400);
