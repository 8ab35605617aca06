use crate::timestamp::Timestamp;

/// The connection state of a [`Shared`](super::Shared), and its counters since creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedStatus {
    /// True if the store is available.
    pub connected: bool,
    /// The start of the current outage; `None` while the store is available.
    pub away_since: Option<Timestamp>,
    /// The number of outages.
    pub outages: u64,
    /// Decisions made by the store.
    pub decided: u64,
    /// Requests refused because the store was unavailable.
    pub degraded_closed: u64,
    /// Requests admitted because the store was unavailable.
    pub degraded_open: u64,
    /// Requests admitted by `open` beyond what the limits had left when the store returned: they were not
    /// charged, so that later requests don't wait for them. For each key, those of the limit that they
    /// exceed most.
    pub uncharged_requests: u64,
    /// The same for tokens.
    pub uncharged_tokens: u64,
    /// Requests decided by the local share because the store was unavailable.
    pub degraded_local: u64,
    /// Calls that were repeated.
    pub retries: u64,
    /// Calls to which the store did not respond in time.
    pub timeouts: u64,
    /// Ends of requests that the store has not acknowledged yet.
    pub unacknowledged: u64,
    /// Live processes of the account when the store last responded, this one included.
    pub members: u64,
    /// Open reservations of this process.
    pub opened: u64,
}
