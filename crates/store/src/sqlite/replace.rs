use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Saved;
use paceline_limiter::limiter::{BucketSnapshot, KeySnapshot};
use paceline_limiter::quota::Key;
use rusqlite::Connection;

use super::bucket_id::BucketId;
use super::compact::NO_OWNER;
use super::database_error::DatabaseError;
use super::load::entry;
use super::owner_transaction::OwnerTransaction;
use super::read::held;
use crate::State;
use crate::clock_origin::signed;

/// Changes without a session.
impl OwnerTransaction<'_> {
    /// Deletes all usage of a key, and records the reset for the owners.
    pub(super) fn reset_now(&mut self, key: &str) -> Result<(), DatabaseError> {
        self.delete_before(key, Timestamp::MAX)?;
        self.record_reset(key, self.now)
    }

    /// Resets all keys.
    pub(super) fn reset_all(&mut self) -> Result<(), DatabaseError> {
        let mut keys = self.tx.prepare(
            "SELECT key FROM buckets UNION SELECT key FROM cooling \
             UNION SELECT key FROM learned UNION SELECT key FROM utilization",
        )?;
        let keys: Vec<String> = keys.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        keys.iter().try_for_each(|key| self.reset_now(key))
    }

    /// Replaces all stored state.
    pub(super) fn replace_all(&mut self, state: &State) -> Result<(), DatabaseError> {
        self.reset_all()?;
        self.tx.execute("UPDATE buckets SET total = 0", [])?;
        for key in &state.keys {
            self.insert_key(key)?;
        }
        self.tx.execute("DELETE FROM quotas", [])?;
        self.write_quotas(&state.quotas, &mut BTreeMap::new())
    }

    /// Inserts a key. Amounts held without a known owner count as used.
    fn insert_key(&mut self, snapshot: &KeySnapshot) -> Result<(), DatabaseError> {
        let KeySnapshot { key, buckets, cooling_until, cooling_kind, learned, utilization } =
            snapshot;
        for BucketSnapshot { dimension, window, saved, refill } in buckets {
            let (dimension, window) = (dimension.clone(), *window);
            let bucket =
                self.bucket_id(&BucketId { key: key.as_str().into(), dimension, window })?;
            self.set_refill(bucket, *refill)?;
            for &(at, amount) in &saved.taken {
                self.add_usage(bucket, NO_OWNER, at, signed(amount))?;
            }
            if saved.held > 0 {
                self.add_usage(bucket, NO_OWNER, self.now, signed(saved.held))?;
            }
        }
        self.write_learned(key, learned)?;
        self.write_utilization(key, utilization)?;
        cooling_until.map_or(Ok(()), |until| self.record_cool_down(key, until, *cooling_kind))
    }
}

/// Adds the amounts that all owners hold to a state.
pub(super) fn add_held(db: &Connection, state: &mut State) -> Result<(), DatabaseError> {
    let by_key = state.keys.drain(..).map(|key| (key.key.as_str().into(), key));
    let mut keys: BTreeMap<Key, KeySnapshot> = by_key.collect();
    for (name, amount) in held(db, NO_OWNER)? {
        let buckets = &mut entry(&mut keys, name.key).buckets;
        let is_same =
            |b: &&mut BucketSnapshot| b.dimension == name.dimension && b.window == name.window;
        match buckets.iter_mut().find(is_same) {
            Some(bucket) => bucket.saved.held = amount,
            None => {
                let saved = Saved { taken: Vec::new(), held: amount };
                buckets.push(BucketSnapshot::new(name.dimension, name.window, saved));
            }
        }
    }
    state.keys = keys.into_values().collect();
    Ok(())
}
