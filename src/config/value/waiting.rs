use std::time::Duration;

/// The bounds of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingConfig {
    /// The maximum number of requests that wait for one key.
    pub max_waiting: usize,
    /// The longest wait of a request, or `None` for no bound.
    pub max_wait: Option<Duration>,
}
