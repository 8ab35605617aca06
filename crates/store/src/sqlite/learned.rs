use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::LearnedLimit;
use paceline_limiter::seam;
use rusqlite::{Connection, params};

use super::database_error::{DatabaseError, DatabaseProblem};
use super::owner_transaction::{OwnerTransaction, time};
use crate::clock_origin::{ClockOrigin, stored};
use crate::dimension;

/// Limits that a provider's answers have shown. Other processes read them when they open the database.
impl OwnerTransaction<'_> {
    /// Replaces the learned limits of a key.
    pub(super) fn write_learned(
        &self,
        key: &str,
        learned: &[LearnedLimit],
    ) -> Result<(), DatabaseError> {
        self.tx.prepare_cached("DELETE FROM learned WHERE key = ?1")?.execute([key])?;
        let sql = "INSERT INTO learned (key, dimension, amount, configured, measured_at, clock, events) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut insert = self.tx.prepare_cached(sql)?;
        for LearnedLimit { dimension, amount, configured, measured_at, events, .. } in learned {
            let dimension = dimension::write(dimension);
            let measured_at = stored(*measured_at);
            let row = params![key, dimension, amount, configured, measured_at, self.clock, events];
            insert.execute(row)?;
        }
        Ok(())
    }

    /// Deletes limits that were measured too long ago.
    pub(super) fn prune_learned(&self) -> Result<(), DatabaseError> {
        for (key, limit) in learned(self.tx, &self.clocks, self.origin, self.now)? {
            if !seam::is_limit_current(&limit, self.now) {
                let sql = "DELETE FROM learned WHERE key = ?1 AND dimension = ?2";
                let row = params![key, dimension::write(&limit.dimension)];
                self.tx.prepare_cached(sql)?.execute(row)?;
            }
        }
        Ok(())
    }
}

/// Returns all learned limits with their keys. A database of the first version has none.
pub(super) fn learned(
    db: &Connection,
    clocks: &BTreeMap<i64, ClockOrigin>,
    origin: &ClockOrigin,
    now: Timestamp,
) -> Result<Vec<(String, LearnedLimit)>, DatabaseError> {
    let mut learned = Vec::new();
    if !db.table_exists(None, "learned")? {
        return Ok(learned);
    }
    let sql = "SELECT key, dimension, amount, configured, measured_at, clock, events FROM learned";
    let mut rows = db.prepare(sql)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let Some(dimension) = dimension::read(row.get_ref(1)?.as_str().unwrap_or_default()) else {
            return Err(DatabaseProblem::Corrupt.into());
        };
        let clock = clocks.get(&row.get(5)?).unwrap_or(origin);
        let measured_at = origin.read(time(row, 4)?, clock, now);
        let mut limit = LearnedLimit::new(dimension, row.get(2)?, measured_at, row.get(6)?);
        limit.configured = row.get(3)?;
        learned.push((row.get(0)?, limit));
    }
    Ok(learned)
}
