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
    /// [`Limiter::set_quota`], while the limiter runs.
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
    /// All quotas that were configured, set and learned, sorted by name; not those that providers
    /// bring along.
    pub fn quotas(&self) -> Vec<NamedQuota> {
        self.core.quotas.read().list()
    }

    /// The one of [these](Self::quotas) with this very name: a key, a glob, or `regex:` and a regular
    /// expression.
    pub fn quota_named(&self, name: &str) -> Option<NamedQuota> {
        self.core.quotas.read().of_name(name)
    }

    /// How many of [them](Self::quotas) there are.
    pub fn quota_count(&self) -> usize {
        self.core.quotas.read().len()
    }

    /// Counts up whenever a quota is set, learned or removed.
    pub fn quotas_version(&self) -> u64 {
        self.core.quotas.read().changes
    }

    /// Takes over quotas of an earlier run that were set while it ran or learned, with their origin.
    /// One of the same name that is there already stays; so configured quotas win over kept ones. Those
    /// that were configured then are left out: what is configured now is known.
    pub fn restore_quotas(&self, kept: &[NamedQuota]) {
        for kept in kept.iter().filter(|kept| kept.origin != QuotaOrigin::Configured) {
            let version = self.core.version();
            let restored = self.core.quotas.write().restore(kept, version);
            if restored {
                self.replan(&kept.name, &kept.quota);
            }
        }
    }
}
