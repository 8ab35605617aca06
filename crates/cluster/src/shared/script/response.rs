use super::view::{Amounts, View};

/// The response of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) outcome: Outcome,
    /// The server's time, in microseconds since the Unix epoch.
    pub(crate) time: u64,
    /// The state of each part after the call.
    pub(crate) views: Vec<View>,
    /// For a refused reservation, the time in microseconds before which the part that refuses it can't admit it, even if
    /// all that is held came back and no request that waits took any; else 0.
    pub(crate) earliest: u64,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Executed; for a reservation: granted.
    Done,
    /// Refused by this rule of this part.
    Refused { part: usize, rule: usize, wait: RetryAfter },
    /// The decision about the lease of each part.
    Leases(Vec<LeaseAnswer>),
    /// Not executed: the call arrived more than a second late by the server's clock (it was
    /// delayed, or the clock was set forward), or lacks calendar windows around the server's time.
    /// Repeat the call, with the time of this response.
    Stale,
    /// Not executed: the server has lost the state that this process knew. Repeat the call with
    /// views.
    Lost,
    /// Not executed: the server has lost its data, and this process has not reported its usage since.
    Outdated,
    /// Not executed: the reservation does not exist or has ended.
    Unknown,
}

/// The decision about a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseAnswer {
    /// Granted: the amounts, without those in flight.
    Granted(Amounts),
    /// Executed, but too little is available.
    Refused(RetryAfter),
    /// Not executed: the lease does not exist or has ended.
    Unknown,
}

/// The time after which a refused request may be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    /// After this many microseconds, if no other request is admitted first.
    In(u64),
    /// When other requests end.
    Unknown,
    Never,
}
