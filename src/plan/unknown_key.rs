use crate::quota::Quota;

/// The policy for a key that no quota names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownKey {
    /// It isn't limited; the first time, that is logged.
    #[default]
    Allow,
    /// It is refused.
    Refuse,
    /// It gets this quota, with buckets of its own.
    Quota(Quota),
    /// One request at a time, until the headers of a response tell its limits, or a success tells
    /// none: see [`Feedback::learn`](crate::limiter::Feedback::learn).
    Learn,
}
