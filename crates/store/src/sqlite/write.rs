use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{KeyChanges, RefusalKind};
use rusqlite::{OptionalExtension, Row, params};

use super::bucket_id::BucketId;
use super::database_error::DatabaseError;
use super::owner_transaction::{OwnerTransaction, time};
use crate::clock_origin::{signed, stored};

/// Writes of the owner's changes.
impl OwnerTransaction<'_> {
    /// Writes changes; `held` contains the amounts that the owner held at the last sync, and is
    /// updated.
    pub(super) fn write(
        &mut self,
        changes: &[KeyChanges],
        held: &mut BTreeMap<BucketId, u64>,
    ) -> Result<(), DatabaseError> {
        for change in changes {
            let KeyChanges {
                key,
                buckets,
                cooling_until,
                cooling_kind,
                learned,
                utilization,
                reset_at,
            } = change;
            if let Some(at) = reset_at {
                self.reset(key, *at)?;
            }
            match cooling_until {
                Some(until) if *until > self.now => {
                    self.record_cool_down(key, *until, *cooling_kind)?
                }
                Some(_) => self.end_cool_down(key)?,
                None => {}
            }
            if let Some(learned) = learned {
                self.write_learned(key, learned)?;
            }
            if let Some(windows) = utilization {
                self.write_utilization(key, windows)?;
            }
            let since = self.reset_at(key)?;
            for bucket in buckets {
                let (dimension, window) = (bucket.dimension.clone(), bucket.window);
                let name = BucketId { key: key.clone(), dimension, window };
                let counts = |(at, amount): &(Timestamp, i64)| *at >= since && *amount != 0;
                let taken: Vec<_> = bucket.taken.iter().copied().filter(counts).collect();
                if !taken.is_empty() {
                    let id = self.bucket_id(&name)?;
                    self.add_usages(id, self.owner, &taken)?;
                    self.set_refill(id, bucket.refill)?;
                }
                self.hold(name, bucket.held, held)?;
            }
        }
        Ok(())
    }

    /// Rewrites all amounts that the owner holds, after it was declared dead.
    pub(super) fn rewrite_held(
        &mut self,
        held: &BTreeMap<BucketId, u64>,
    ) -> Result<(), DatabaseError> {
        self.tx.execute("DELETE FROM held WHERE owner = ?1", [self.owner])?;
        let mut none = BTreeMap::new();
        held.iter().try_for_each(|(name, amount)| self.hold(name.clone(), *amount, &mut none))
    }

    fn hold(
        &mut self,
        name: BucketId,
        amount: u64,
        held: &mut BTreeMap<BucketId, u64>,
    ) -> Result<(), DatabaseError> {
        if held.get(&name).copied().unwrap_or(0) == amount {
            return Ok(());
        }
        let bucket = self.bucket_id(&name)?;
        // A new sequence number makes other owners read the change.
        self.next();
        if amount == 0 {
            let sql = "DELETE FROM held WHERE owner = ?1 AND bucket = ?2";
            self.tx.prepare_cached(sql)?.execute([self.owner, bucket])?;
            held.remove(&name);
        } else {
            let sql = "INSERT OR REPLACE INTO held (owner, bucket, amount) VALUES (?1, ?2, ?3)";
            let row = params![self.owner, bucket, signed(amount)];
            self.tx.prepare_cached(sql)?.execute(row)?;
            held.insert(name, amount);
        }
        Ok(())
    }

    /// Resets the usage of a key before `at`, and all recorded usage of this owner, whose later
    /// usage is not written yet. Held amounts stay.
    fn reset(&mut self, key: &str, at: Timestamp) -> Result<(), DatabaseError> {
        let sql = "DELETE FROM usage WHERE owner = ?2 AND bucket IN \
                   (SELECT id FROM buckets WHERE key = ?1)";
        self.tx.prepare_cached(sql)?.execute(params![key, self.owner])?;
        self.delete_before(key, at)?;
        self.record_reset(key, at)
    }

    pub(super) fn delete_before(&self, key: &str, time: Timestamp) -> Result<(), DatabaseError> {
        self.write_learned(key, &[])?;
        self.write_utilization(key, &[])?;
        for (&id, clock) in &self.clocks {
            let time = stored(time).saturating_sub(self.origin.ahead_of(clock));
            for table in ["usage", "buried"] {
                let sql = format!(
                    "DELETE FROM {table} WHERE at < ?3 AND clock = ?2 AND bucket IN \
                     (SELECT id FROM buckets WHERE key = ?1)"
                );
                self.tx.prepare_cached(&sql)?.execute(params![key, id, time])?;
            }
            let sql = "DELETE FROM cooling WHERE key = ?1 AND clock = ?2 AND noted_at < ?3";
            self.tx.prepare_cached(sql)?.execute(params![key, id, time])?;
        }
        Ok(())
    }

    /// Records a reset for the other owners.
    pub(super) fn record_reset(&mut self, key: &str, at: Timestamp) -> Result<(), DatabaseError> {
        let seq = self.next();
        let sql = "INSERT OR REPLACE INTO resets (key, at, clock, owner, seq) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![key, stored(at), self.clock, self.owner, seq];
        self.tx.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// Returns the time of the last reset of a key by this clock; usage before it is deleted.
    fn reset_at(&self, key: &str) -> Result<Timestamp, DatabaseError> {
        let sql = "SELECT at, clock FROM resets WHERE key = ?1";
        let row = |row: &Row<'_>| Ok((time(row, 0)?, row.get(1)?));
        let reset = self.tx.prepare_cached(sql)?.query_row([key], row).optional()?;
        Ok(reset.map_or(Timestamp::UNIX_EPOCH, |(at, clock)| self.read(at, clock)))
    }

    /// Deletes the cool-down that this owner has recorded.
    fn end_cool_down(&self, key: &str) -> Result<(), DatabaseError> {
        let sql = "DELETE FROM cooling WHERE key = ?1 AND owner = ?2";
        self.tx.prepare_cached(sql)?.execute(params![key, self.owner])?;
        Ok(())
    }

    /// Records the end of a cool-down, unless a later one is recorded.
    pub(super) fn record_cool_down(
        &mut self,
        key: &str,
        until: Timestamp,
        kind: Option<RefusalKind>,
    ) -> Result<(), DatabaseError> {
        let sql = "SELECT until, noted_at, clock FROM cooling WHERE key = ?1";
        let row = |row: &Row<'_>| Ok((time(row, 0)?, time(row, 1)?, row.get(2)?));
        let known = self.tx.prepare_cached(sql)?.query_row([key], row).optional()?;
        let known = known.map_or(Timestamp::UNIX_EPOCH, |(until, recorded_at, clock)| {
            self.origin.read_until(until, recorded_at, self.clock_of(clock), self.now)
        });
        if known >= until {
            return Ok(());
        }
        let seq = self.next();
        let sql = "INSERT OR REPLACE INTO cooling (key, until, noted_at, clock, owner, seq, kind) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (until, noted_at) = (stored(until), stored(self.now));
        let kind = kind.map(RefusalKind::as_str);
        let row = params![key, until, noted_at, self.clock, self.owner, seq, kind];
        self.tx.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}
