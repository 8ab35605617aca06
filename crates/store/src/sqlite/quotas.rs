use std::collections::BTreeMap;

use paceline_limiter::limiter::NamedQuota;
use rusqlite::params;

use super::database_error::{DatabaseError, DatabaseProblem};
use super::owner_transaction::OwnerTransaction;
use super::quota_text;

/// The quotas of all owners.
impl OwnerTransaction<'_> {
    /// Writes the owner's quotas that differ from `known`, and deletes those that it no longer has.
    /// Quotas of other owners stay.
    pub(super) fn write_quotas(
        &mut self,
        quotas: &[NamedQuota],
        known: &mut BTreeMap<String, String>,
    ) -> Result<(), DatabaseError> {
        let mut current = BTreeMap::new();
        for quota in quotas {
            let Some(text) = quota_text::write(&quota.quota) else {
                return Err(DatabaseProblem::Quota(quota.name.clone()).into());
            };
            let origin = quota_text::write_origin(quota.origin);
            let row = format!("{origin} {text}");
            if known.get(&quota.name) != Some(&row) {
                let sql = "INSERT OR REPLACE INTO quotas (name, origin, quota, owner) \
                           VALUES (?1, ?2, ?3, ?4)";
                self.tx.execute(sql, params![quota.name, origin, text, self.owner])?;
            }
            current.insert(quota.name.clone(), row);
        }
        for removed in known.keys().filter(|name| !current.contains_key(*name)) {
            self.tx.execute("DELETE FROM quotas WHERE name = ?1", [removed])?;
        }
        *known = current;
        Ok(())
    }

    /// Returns the quotas that a new owner becomes responsible for: those that were set or learned,
    /// and those that were configured for an owner that is gone.
    pub(super) fn inherited_quotas(&self) -> Result<BTreeMap<String, String>, DatabaseError> {
        let gone = "owner NOT IN (SELECT id FROM owners WHERE buried_at IS NULL)";
        let sql = format!(
            "SELECT name, CASE origin WHEN 'configured' THEN '' ELSE origin || ' ' || quota END \
             FROM quotas WHERE origin <> 'configured' OR {gone}"
        );
        let mut rows = self.tx.prepare(&sql)?;
        Ok(rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
    }
}
