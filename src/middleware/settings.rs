use std::time::Duration;

use crate::quota::Key;

use super::queue_slots::QueueSlots;
use super::scope_key::{ScopeKey, ScopeKeys};
use super::typical_cost::TypicalCost;
use crate::limiter::Limiter;
use crate::price::PriceList;
use paceline_limiter::seam::OwnStanding;

/// The state that the services of one layer share.
pub(super) struct Settings<C, O> {
    pub(super) limiter: Limiter,
    pub(super) classify: C,
    pub(super) observe: O,
    pub(super) options: Options,
    pub(super) typical_cost: TypicalCost,
    pub(super) slots: QueueSlots,
}

/// The options of a layer.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) key: Option<Key>,
    /// The layer's key, if set, followed by its other scopes.
    pub(super) keys: ScopeKeys,
    pub(super) max_wait: Option<Duration>,
    /// The number of requests that wait after their call before `poll_ready` is pending.
    pub(super) max_waiting: Option<usize>,
    /// `true` if requests wait while the server fails all of them.
    pub(super) waits_for_server: bool,
    /// The priority and the flow of requests that set none.
    pub(super) standing: OwnStanding,
    /// The prices by which limits on spending count.
    pub(super) prices: PriceList,
    /// `true` in server mode, where refusals carry the levels of their keys for the response headers.
    pub(super) is_server_mode: bool,
}

impl Options {
    /// Returns the priority and the flow of a request with these of its own.
    pub(super) fn standing_of(&self, own: Option<&OwnStanding>) -> Option<OwnStanding> {
        let own = own.cloned().unwrap_or_default();
        let standing = OwnStanding {
            priority: own.priority.or(self.standing.priority),
            flow: own.flow.or_else(|| self.standing.flow.clone()),
        };
        (standing != OwnStanding::default()).then_some(standing)
    }

    /// Returns the number of requests that may wait after their call. With a `max_wait`, and so in server mode,
    /// a request that waits too long gets an error instead.
    pub(super) fn slots(&self) -> usize {
        match self.max_wait {
            Some(_) => usize::MAX,
            None => self.max_waiting.unwrap_or(MAX_WAITING),
        }
    }

    /// Returns the layer's scopes without its key.
    pub(super) fn scopes(&self) -> &[ScopeKey] {
        &self.keys[usize::from(self.key.is_some())..]
    }
}

/// Half of a limiter's default bound for one key: services that are ready when the last slot is taken, and other
/// layers, find the queue below that bound.
const MAX_WAITING: usize = 5_000;
