use std::collections::BTreeMap;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::Utilization;
use paceline_limiter::seam;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::database_error::DatabaseError;
use super::owner_transaction::{OwnerTransaction, time};
use crate::clock_origin::{ClockOrigin, stored};

/// The used parts of the account's windows. Other processes read them when they open the database.
impl OwnerTransaction<'_> {
    /// Replaces the used parts of a key's windows, except those of which a newer statement is recorded.
    pub(super) fn write_utilization(
        &self,
        key: &str,
        windows: &[Utilization],
    ) -> Result<(), DatabaseError> {
        let known = "SELECT observed_at, clock FROM utilization WHERE key = ?1 AND window = ?2";
        let insert = "INSERT OR REPLACE INTO utilization \
                      (key, window, used, resets_at, observed_at, clock) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.delete_other_windows(key, windows)?;
        for Utilization { window, used, resets_at, observed_at, .. } in windows {
            let row = |row: &Row<'_>| Ok((time(row, 0)?, row.get(1)?));
            let mut known = self.tx.prepare_cached(known)?;
            let known = known.query_row([key, window], row).optional()?;
            if known.is_some_and(|(at, clock)| self.read(at, clock) > *observed_at) {
                continue;
            }
            let (resets_at, observed_at) = (resets_at.map(stored), stored(*observed_at));
            let row = params![key, window, used, resets_at, observed_at, self.clock];
            self.tx.prepare_cached(insert)?.execute(row)?;
        }
        Ok(())
    }

    /// Deletes the windows of a key that aren't among these, unless another process stated them later.
    fn delete_other_windows(
        &self,
        key: &str,
        windows: &[Utilization],
    ) -> Result<(), DatabaseError> {
        let sql = "SELECT window, observed_at, clock FROM utilization WHERE key = ?1";
        let mut rows = self.tx.prepare_cached(sql)?;
        let row = |row: &Row<'_>| Ok((row.get(0)?, time(row, 1)?, row.get(2)?));
        let known: Vec<(String, Timestamp, i64)> =
            rows.query_map([key], row)?.collect::<Result<_, _>>()?;
        let stated_at = windows.iter().map(|window| window.observed_at).max();
        for (window, at, clock) in known {
            let is_newer = stated_at.is_some_and(|stated_at| self.read(at, clock) > stated_at);
            if !is_newer && windows.iter().all(|stated| stated.window != window) {
                let sql = "DELETE FROM utilization WHERE key = ?1 AND window = ?2";
                self.tx.prepare_cached(sql)?.execute([key, &window])?;
            }
        }
        Ok(())
    }

    /// Deletes windows that have started again.
    pub(super) fn prune_utilization(&self) -> Result<(), DatabaseError> {
        for (key, window) in utilization(self.tx, &self.clocks, self.origin, self.now)? {
            if !seam::is_utilization_current(&window, self.now) {
                let sql = "DELETE FROM utilization WHERE key = ?1 AND window = ?2";
                self.tx.prepare_cached(sql)?.execute([&key, &window.window])?;
            }
        }
        Ok(())
    }
}

/// Returns the used parts of all windows with their keys. A database of an earlier version has none.
pub(super) fn utilization(
    db: &Connection,
    clocks: &BTreeMap<i64, ClockOrigin>,
    origin: &ClockOrigin,
    now: Timestamp,
) -> Result<Vec<(String, Utilization)>, DatabaseError> {
    let mut windows = Vec::new();
    if !db.table_exists(None, "utilization")? {
        return Ok(windows);
    }
    let sql = "SELECT key, window, used, observed_at, clock, resets_at FROM utilization";
    let mut rows = db.prepare(sql)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let observed_at = time(row, 3)?;
        let clock = clocks.get(&row.get(4)?).unwrap_or(origin);
        let resets_at = match row.get::<_, Option<i64>>(5)? {
            Some(_) => Some(origin.read_until(time(row, 5)?, observed_at, clock, now)),
            None => None,
        };
        let observed_at = origin.read(observed_at, clock, now);
        let mut window = Utilization::new(row.get::<_, String>(1)?, row.get(2)?);
        (window.resets_at, window.observed_at) = (resets_at, observed_at);
        windows.push((row.get(0)?, window));
    }
    Ok(windows)
}
