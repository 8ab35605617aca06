/// The connection state of a [`Bus`](super::Bus) and its message counters since creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusStatus {
    /// True if the bus is connected.
    pub connected: bool,
    /// Messages sent: acknowledged by Redis, or accepted by the connection to NATS.
    pub published: u64,
    /// Messages that could not be sent in time.
    pub failed: u64,
    /// Messages dropped because the queue was full.
    pub dropped: u64,
    /// Messages received, the publisher's own included.
    pub received: u64,
}
