use super::limiter::Limiter;
use crate::quota::Quota;

/// A quota of a limiter, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedQuota {
    /// The key, the glob, or `regex:` and a regular expression.
    pub name: String,
    /// The quota, as it was given: without the limiter's share taken of it.
    pub quota: Quota,
    /// Who said so.
    pub origin: QuotaOrigin,
}

/// Who has set a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaOrigin {
    /// The [`Builder`](super::Builder): a program's own code, or its configuration.
    Configured,
    /// [`Quotas::set`](super::Quotas::set), while the limiter runs.
    Set,
    /// The headers of a response.
    Learned,
}

impl NamedQuota {
    /// A quota of a limiter.
    pub fn new(name: impl Into<String>, quota: Quota, origin: QuotaOrigin) -> Self {
        Self { name: name.into(), quota, origin }
    }
}

impl Limiter {
    pub(super) fn quota_list(&self) -> Vec<NamedQuota> {
        self.core.quotas.read().list()
    }

    pub(super) fn quota_named(&self, name: &str) -> Option<NamedQuota> {
        self.core.quotas.read().of_name(name)
    }

    pub(super) fn quota_count(&self) -> usize {
        self.core.quotas.read().len()
    }

    pub(super) fn quotas_version(&self) -> u64 {
        self.core.quotas.read().changes
    }

    pub(super) fn restore_quotas(&self, kept: &[NamedQuota]) {
        for kept in kept.iter().filter(|kept| kept.origin != QuotaOrigin::Configured) {
            let version = self.core.version();
            let restored = self.core.quotas.write().restore(kept, version);
            if restored {
                self.replan(&kept.name, &kept.quota);
            }
        }
    }
}
