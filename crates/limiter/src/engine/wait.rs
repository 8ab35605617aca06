use crate::timestamp::Timestamp;

/// The time until a request that doesn't fit now can be admitted.
///
/// Ordered from the shortest to the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// At this time, if no other request comes first; not a nanosecond earlier.
    At(Timestamp),
    /// Once a request in flight is settled or released.
    Unknown,
    /// Never: the cost exceeds the capacity of the bucket, or what is left of a limit that never resets, or the
    /// bucket doesn't belong to the rule.
    Never,
}

/// The rule that caused a refusal, and its wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// The index of the rule with the longest wait, or of the first one without a bucket.
    pub rule: usize,
    /// The longest wait.
    pub wait: Wait,
}
