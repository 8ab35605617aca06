use std::collections::{BTreeMap, BTreeSet};

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{BucketChanges, KeyChanges};
use paceline_limiter::quota::Key;
use rusqlite::{Connection, Params, params};

use super::bucket_id::BucketId;
use super::database_error::DatabaseError;
use super::owner_transaction::{OwnerTransaction, kind, time};

/// Reads of the changes of other owners.
impl OwnerTransaction<'_> {
    /// Returns the changes of other owners since sequence number `seen`, sorted by key, with times
    /// by this clock. `others_held` contains the amounts that other owners held at the last call, and
    /// is updated.
    pub(super) fn read_changes(
        &self,
        seen: i64,
        others_held: &mut BTreeMap<BucketId, u64>,
    ) -> Result<Vec<KeyChanges>, DatabaseError> {
        let mut keys: BTreeMap<Key, KeyChanges> = BTreeMap::new();
        self.read_resets(seen, &mut keys)?;
        // A reset clears this owner's usage as well, so read all usage since then.
        let reset: Vec<String> = keys.keys().map(ToString::to_string).collect();
        self.read_cool_downs(seen, &mut keys)?;
        let mut taken = self.read_usage(BY_OTHERS, params![seen, self.owner])?;
        for key in &reset {
            taken.retain(|name, _| name.key != *key);
            taken.extend(self.read_usage(BY_KEY, [key])?);
        }
        let held = held(self.tx, self.owner)?;
        let changed = others_held
            .keys()
            .chain(held.keys())
            .filter(|name| others_held.get(name) != held.get(name));
        let names: BTreeSet<BucketId> = changed.chain(taken.keys()).cloned().collect();
        for name in names {
            let amount = held.get(&name).copied().unwrap_or(0);
            let taken = taken.remove(&name).unwrap_or_default();
            let bucket = BucketChanges::new(name.dimension, name.window, taken, amount);
            entry(&mut keys, name.key).buckets.push(bucket);
        }
        *others_held = held;
        Ok(keys.into_values().collect())
    }

    fn read_usage(
        &self,
        filter: &str,
        params: impl Params,
    ) -> Result<BTreeMap<BucketId, Vec<(Timestamp, i64)>>, DatabaseError> {
        let sql = "SELECT at, usage.clock, amount, key, dimension, window_ns \
                   FROM usage JOIN buckets ON id = bucket WHERE";
        let mut rows = self.tx.prepare_cached(&format!("{sql} {filter}"))?;
        let mut rows = rows.query(params)?;
        let mut taken: BTreeMap<BucketId, Vec<(Timestamp, i64)>> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let at = self.read(time(row, 0)?, row.get(1)?);
            taken.entry(BucketId::read(row, 3)?).or_default().push((at, row.get(2)?));
        }
        taken.values_mut().for_each(|taken| taken.sort_by_key(|&(at, _)| at));
        Ok(taken)
    }

    fn read_resets(
        &self,
        seen: i64,
        keys: &mut BTreeMap<Key, KeyChanges>,
    ) -> Result<(), DatabaseError> {
        let sql = "SELECT key, at, clock FROM resets WHERE seq > ?1 AND owner <> ?2";
        let mut rows = self.tx.prepare_cached(sql)?;
        let mut rows = rows.query(params![seen, self.owner])?;
        while let Some(row) = rows.next()? {
            let at = self.read(time(row, 1)?, row.get(2)?);
            let key: String = row.get(0)?;
            entry(keys, key.into()).reset_at = Some(at);
        }
        Ok(())
    }

    fn read_cool_downs(
        &self,
        seen: i64,
        keys: &mut BTreeMap<Key, KeyChanges>,
    ) -> Result<(), DatabaseError> {
        let sql = "SELECT key, until, noted_at, clock, kind FROM cooling WHERE seq > ?1 AND owner <> ?2 \
                   OR key IN (SELECT key FROM resets WHERE seq > ?1 AND owner <> ?2)";
        let mut rows = self.tx.prepare_cached(sql)?;
        let mut rows = rows.query(params![seen, self.owner])?;
        while let Some(row) = rows.next()? {
            let (until, recorded_at) = (time(row, 1)?, time(row, 2)?);
            let until =
                self.origin.read_until(until, recorded_at, self.clock_of(row.get(3)?), self.now);
            if until > self.now {
                let key: String = row.get(0)?;
                let changes = entry(keys, key.into());
                (changes.cooling_until, changes.cooling_kind) = (Some(until), kind(row, 4)?);
            }
        }
        Ok(())
    }
}

/// Returns the amounts that all owners except `except` hold.
pub(super) fn held(db: &Connection, except: i64) -> Result<BTreeMap<BucketId, u64>, DatabaseError> {
    let sql = "SELECT amount, key, dimension, window_ns FROM held JOIN buckets ON id = bucket \
               WHERE owner <> ?1";
    let mut rows = db.prepare_cached(sql)?;
    let mut rows = rows.query([except])?;
    let mut held: BTreeMap<BucketId, u64> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let total = held.entry(BucketId::read(row, 1)?).or_default();
        *total = total.saturating_add(row.get(0)?);
    }
    Ok(held)
}

fn entry(keys: &mut BTreeMap<Key, KeyChanges>, key: Key) -> &mut KeyChanges {
    keys.entry(key.clone()).or_insert_with(|| KeyChanges::new(key))
}

/// A filter for usage of other owners that this owner has not read.
const BY_OTHERS: &str = "seq > ?1 AND owner <> ?2";
/// A filter for all usage of a key.
const BY_KEY: &str = "key = ?1";
