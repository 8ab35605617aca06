/// What a [`Bus`](super::Bus) did since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusStatus {
    /// Whether it is connected now.
    pub connected: bool,
    /// Messages that were sent: given to Redis, or to the connection to NATS.
    pub published: u64,
    /// Messages that could not be sent, or not in time.
    pub failed: u64,
    /// Messages that were not even taken, because too many wait.
    pub dropped: u64,
    /// Messages that came in, one's own included.
    pub received: u64,
}
