use std::sync::Arc;

use paceline_limiter::engine::Rule;
use smallvec::SmallVec;

use super::call::{Amounts, Id};

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

/// The state of one key at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The time at which the server created the state. A different value in a later response means
    /// that the state was lost in the meantime.
    pub(crate) created_at: u64,
    /// True if limits of other processes count too, which have other windows in the same dimensions.
    pub(crate) has_other_windows: bool,
    /// The time of this state.
    pub(crate) at: u64,
    /// The used and held amounts of each rule.
    pub(crate) buckets: SmallVec<[(u64, u64); 3]>,
    /// The times of use of each rule; empty if they are unknown.
    pub(crate) uses: Vec<Uses>,
    /// The reservations that the server holds for this process; never part of a response.
    pub(crate) reservations: Vec<KnownReservation>,
}

/// A reservation or a lease that the server holds for this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownReservation {
    pub(crate) id: Id,
    /// The server time of the grant; 0 if its amounts other than concurrency slots are charged already.
    pub(crate) sent: u64,
    /// The server time of the grant or the last renewal.
    pub(crate) renewed: u64,
    /// The time for which it lasts without renewal, in microseconds.
    pub(crate) ttl: u64,
    /// The number of the last call for a lease.
    pub(crate) call_number: Option<u32>,
    pub(crate) rules: Arc<[Rule]>,
    pub(crate) amounts: Amounts,
}

/// When the amounts in a sliding window were used, or when a fixed window began: pairs of time and
/// amount, oldest first. Empty for other rules.
pub(crate) type Uses = Vec<(u64, u64)>;
