use crate::timestamp::Timestamp;

/// When a request that doesn't fit now will fit.
///
/// Ordered from the shortest to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// At this time, if no other request comes first; not a nanosecond earlier.
    At(Timestamp),
    /// When a request in flight is settled or released.
    Unknown,
    /// Never: the cost is above what the bucket can ever hold.
    Never,
}

/// Why an admission was refused: the rule that binds, and its wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// Index of the rule with the longest wait.
    pub rule: usize,
    /// How long that wait is.
    pub wait: Wait,
}
