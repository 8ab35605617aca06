use crate::quota::Quota;

/// The policy for keys that no quota covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownKey {
    /// Admits the key without limits, and logs that once.
    #[default]
    Allow,
    /// Refuses the key.
    Refuse,
    /// Gives each key this quota, with separate buckets.
    Quota(Quota),
    /// Admits one request at a time until the headers of a response state the limits, or a success
    /// states none; see [`Feedback::learn`](crate::limiter::Feedback::learn).
    Learn,
}
