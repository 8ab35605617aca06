use std::collections::BTreeSet;

use rusqlite::params;

use super::fault::{Fault, Trouble};
use super::quota_text;
use super::turn::Turn;
use crate::limiter::NamedQuota;

/// The quotas of all owners.
impl Turn<'_> {
    /// Writes down the owner's quotas in place of those it had, `mine`; others' stay.
    pub(super) fn write_quotas(
        &mut self,
        quotas: &[NamedQuota],
        mine: &mut BTreeSet<String>,
    ) -> Result<(), Fault> {
        let now: BTreeSet<String> = quotas.iter().map(|quota| quota.name.clone()).collect();
        for gone in mine.difference(&now) {
            self.tx.execute("DELETE FROM quotas WHERE name = ?1", [gone])?;
        }
        for quota in quotas {
            let Some(text) = quota_text::write(&quota.quota) else {
                return Err(Trouble::Quota(quota.name.clone()).into());
            };
            let sql = "INSERT OR REPLACE INTO quotas (name, origin, quota, owner) \
                       VALUES (?1, ?2, ?3, ?4)";
            let origin = quota_text::write_origin(quota.origin);
            self.tx.execute(sql, params![quota.name, origin, text, self.owner])?;
        }
        *mine = now;
        Ok(())
    }

    /// The quotas that an owner who joins answers for: those that were set or learned, which it
    /// restores, and those that were configured for somebody who is gone.
    pub(super) fn inherited(&self) -> Result<BTreeSet<String>, Fault> {
        let sql = "SELECT name FROM quotas WHERE origin <> 'configured' OR owner NOT IN \
                   (SELECT id FROM owners WHERE buried_at IS NULL)";
        let mut rows = self.tx.prepare(sql)?;
        Ok(rows.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}
