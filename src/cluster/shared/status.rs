use crate::timestamp::Timestamp;

/// How a [`Shared`](super::Shared) fares, and what it has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedStatus {
    /// Whether the store answers.
    pub connected: bool,
    /// The time since which it doesn't answer, if it doesn't.
    pub away_since: Option<Timestamp>,
    /// How often it went away.
    pub outages: u64,
    /// Decisions of the store.
    pub decided: u64,
    /// Refused because the store was away.
    pub degraded_closed: u64,
    /// Let in because the store was away.
    pub degraded_open: u64,
    /// Decided by this process's own share because the store was away.
    pub degraded_local: u64,
    /// Calls that were sent again.
    pub retries: u64,
    /// Decisions that the store gave no answer to in time.
    pub timeouts: u64,
    /// Ends of requests that the store doesn't know of yet.
    pub unacknowledged: u64,
    /// Processes on the account that lived when the store was last seen, this one included.
    pub members: u64,
    /// Reservations of this process that are open.
    pub opened: u64,
}
