use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, params};

use super::fault::Fault;
use super::name::Name;
use super::turn::Turn;
use crate::limiter::KeyChanges;
use crate::store::times::signed;

/// What the owner did.
impl Turn<'_> {
    /// Writes down what changed; `held` is what the owner held at the last time, and does now.
    pub(super) fn write(
        &mut self,
        changes: &[KeyChanges],
        held: &mut BTreeMap<Name, u64>,
    ) -> Result<(), Fault> {
        for change in changes {
            if let Some(at) = change.reset_at {
                self.reset(&change.key, at)?;
            }
            if let Some(until) = change.cooling_until {
                self.cool(&change.key, until)?;
            }
            let since = self.reset_at(&change.key)?;
            for bucket in &change.buckets {
                let (dimension, window) = (bucket.dimension.clone(), bucket.window);
                let name = Name { key: change.key.clone(), dimension, window };
                let counts = |(at, amount): &(u64, i64)| *at >= since && *amount != 0;
                let taken: Vec<_> = bucket.taken.iter().copied().filter(counts).collect();
                if !taken.is_empty() {
                    self.take_each(self.bucket(&name)?, self.owner, &taken)?;
                }
                self.hold(name, bucket.held, held)?;
            }
        }
        Ok(())
    }

    /// Writes down all that the owner holds, after others took it for dead.
    pub(super) fn hold_again(&mut self, held: &BTreeMap<Name, u64>) -> Result<(), Fault> {
        self.tx.execute("DELETE FROM held WHERE owner = ?1", [self.owner])?;
        let mut none = BTreeMap::new();
        held.iter().try_for_each(|(name, amount)| self.hold(name.clone(), *amount, &mut none))
    }

    fn hold(
        &mut self,
        name: Name,
        amount: u64,
        held: &mut BTreeMap<Name, u64>,
    ) -> Result<(), Fault> {
        if held.get(&name).copied().unwrap_or(0) == amount {
            return Ok(());
        }
        let bucket = self.bucket(&name)?;
        // Others have to hear of it.
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

    /// Forgets what was taken of a key; what is held stays held.
    pub(super) fn reset(&mut self, key: &str, at: u64) -> Result<(), Fault> {
        for table in ["usage", "buried"] {
            let sql = format!(
                "DELETE FROM {table} WHERE bucket IN (SELECT id FROM buckets WHERE key = ?1)"
            );
            self.tx.prepare_cached(&sql)?.execute([key])?;
        }
        self.tx.prepare_cached("DELETE FROM cooling WHERE key = ?1")?.execute([key])?;
        let seq = self.next();
        let sql = "INSERT OR REPLACE INTO resets (key, at, clock, owner, seq) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![key, signed(at), self.clock, self.owner, seq];
        self.tx.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// When a key was reset, by our clock; what was taken before is forgotten.
    fn reset_at(&self, key: &str) -> Result<u64, Fault> {
        let sql = "SELECT at, clock FROM resets WHERE key = ?1";
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let reset = self.tx.prepare_cached(sql)?.query_row([key], row).optional()?;
        Ok(reset.map_or(0, |(at, clock)| self.read(at, clock)))
    }

    pub(super) fn cool(&mut self, key: &str, until: u64) -> Result<(), Fault> {
        let seq = self.next();
        let sql = "INSERT OR REPLACE INTO cooling (key, until, noted_at, clock, owner, seq) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let row = params![key, signed(until), signed(self.now), self.clock, self.owner, seq];
        self.tx.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}
