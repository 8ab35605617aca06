use crate::quota::Quota;

/// A quota of a limiter, with the keys that it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedQuota {
    /// The key, the glob, or `regex:` and a regular expression.
    pub name: String,
    /// The quota as it was set, before the limiter's share is applied.
    pub quota: Quota,
    /// The source of the quota.
    pub origin: QuotaOrigin,
}

/// The source of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaOrigin {
    /// The [`Builder`](crate::limiter::Builder): a program's own code, or its configuration.
    Configured,
    /// [`Quotas::set`](crate::limiter::Quotas::set), while the limiter runs.
    Set,
    /// The headers of a response.
    Learned,
    /// The provider's API for the limits of an account ([`Quotas::follow_provider`](crate::limiter::Quotas::follow_provider)).
    Provider,
}

impl NamedQuota {
    /// Creates a named quota.
    pub fn new(name: impl Into<String>, quota: Quota, origin: QuotaOrigin) -> Self {
        Self { name: name.into(), quota, origin }
    }
}
