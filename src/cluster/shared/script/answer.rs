use smallvec::SmallVec;

use super::call::Amounts;

/// What the script has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cluster::shared) struct Answer {
    pub(in crate::cluster::shared) verdict: Verdict,
    /// What the server's clock said.
    pub(in crate::cluster::shared) time: u64,
    /// What there is of each part now.
    pub(in crate::cluster::shared) views: Vec<View>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cluster::shared) enum Verdict {
    /// Done; for a reservation: granted.
    Done,
    /// No room.
    Refused { part: usize, rule: usize, wait: RetryAfter },
    /// A lease: what was granted of each part, what is in flight left out.
    Leased(Vec<Amounts>),
    /// The call came later than it was sent, by more than a second of the server's clock: nothing was
    /// done. Either it was held up on its way, or the server's clock was set forward. Or the call knows
    /// no windows of a calendar around the server's time.
    Stale,
    /// The server has another state of these parts than the one that this process knew (it came back
    /// without it): nothing was done; to be called again with views.
    Lost,
    /// There is no such reservation (any more).
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster::shared) enum RetryAfter {
    /// So many microseconds from now, if nobody else comes.
    In(u64),
    /// When others end.
    Unknown,
    Never,
}

/// The state of one key, as it was at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cluster::shared) struct View {
    /// When the server began to keep it: another figure later means that it was lost in between.
    pub(in crate::cluster::shared) born: u64,
    /// When this was so.
    pub(in crate::cluster::shared) at: u64,
    /// For each rule: what is used, and what is held.
    pub(in crate::cluster::shared) buckets: SmallVec<[(u64, u64); 3]>,
}
