use std::sync::Arc;

use paceline_limiter::engine::Rule;
use smallvec::SmallVec;

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

/// The id of a reservation, the same for each call on its behalf, so that a repeated call is
/// executed once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Id(pub(crate) [u8; 16]);

/// Amounts, one per rule.
pub(crate) type Amounts = SmallVec<[u64; 3]>;
