use super::quota_index::QuotaIndex;
use super::quota_registry::QuotaRegistry;
use super::registered_quota::RegisteredQuota;
use crate::quota::Key;

/// The name space of keys that have the quotas of other names, in buckets of their own: those that clients of a server
/// choose freely.
impl QuotaRegistry {
    /// Returns the key of this name in the name space.
    pub(crate) fn in_name_space(&self, name: &str) -> Option<String> {
        self.name_space.map(|prefix| format!("{prefix}{name}"))
    }

    /// Returns the quota that covers a key. A key in the name space has one that names it there, else that of its name.
    pub(super) fn covering<'q>(
        &self,
        quotas: &'q QuotaIndex<RegisteredQuota>,
        key: &str,
    ) -> Option<&'q RegisteredQuota> {
        let Some((prefix, name)) = self.split(key) else { return quotas.find(key) };
        let own = quotas.find(key).filter(|quota| quota.name.starts_with(prefix));
        own.or_else(|| quotas.find(name))
    }

    /// Returns the key of the buckets that a key shares with others by a quota of this name: those in the name space
    /// share them among themselves.
    pub(crate) fn shared_key(&self, quota: &Key, key: &str) -> Key {
        match self.split(key) {
            Some((prefix, _)) if !quota.starts_with(prefix) => format!("{prefix}{quota}").into(),
            _ => quota.clone(),
        }
    }

    /// Splits a key in the name space into the prefix and its name.
    pub(super) fn split<'k>(&self, key: &'k str) -> Option<(&'static str, &'k str)> {
        let prefix = self.name_space?;
        Some((prefix, key.strip_prefix(prefix)?))
    }
}
