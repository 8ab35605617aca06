use std::time::Duration;

/// Who may wait for capacity, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// How many requests may wait for one key.
    pub max_waiting: usize,
    /// How long a request may wait; without a bound where it is `None`.
    pub max_wait: Option<Duration>,
}
