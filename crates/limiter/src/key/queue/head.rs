use super::turn::Turn;
use crate::timestamp::Timestamp;

/// The flow whose turn it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// The first waiter of the flow.
    pub(super) turn: Turn,
    pub(super) since: Timestamp,
    /// Its priority was starved: it has this turn, whatever arrives.
    pub(super) is_starved: bool,
    /// The number of this choice of a flow; later choices have higher numbers.
    pub(super) number: u64,
}
