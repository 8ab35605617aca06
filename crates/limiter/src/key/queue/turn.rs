use std::cmp::Reverse;
use std::time::Duration;

use super::priority::Priority;
use crate::quota::Cost;

/// A waiter's identity in the queues of its keys, and its part in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(super) kind: Kind,
    pub(super) priority: Priority,
    /// The flow: requests of one flow are served in order of arrival, flows share the limit.
    pub(super) flow: u64,
    /// Drawn on arrival; one order for all keys.
    pub(super) arrival: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Takes a reservation.
    Request,
    /// Takes nothing: a service that waits until a request would be admitted.
    Gate,
}

/// The service that a waiter needs of one key, and the policy of its limiter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    /// The time for which the request occupies the limit: the largest of cost / rate over the
    /// dimensions, in nanoseconds.
    pub(crate) unit: u64,
    /// The amounts of the request: requests, tokens, input tokens and output tokens.
    pub(crate) amounts: Amounts<u64>,
    /// The share of the flow, relative to those of others.
    pub(crate) weight: u32,
    /// The time after which a lower priority has a turn.
    pub(crate) max_starvation: Duration,
}

/// Amounts of requests, tokens, input tokens and output tokens.
pub(crate) type Amounts<T> = [T; 4];

/// The amounts of a gate, which takes nothing.
pub(crate) const NO_AMOUNTS: Amounts<u64> = [0; 4];

/// The terms on which a gate opens.
#[derive(Debug, Clone)]
pub(crate) struct GateTerms {
    /// The cost that has to fit.
    pub(crate) cost: Cost,
    /// `true` if the gate's request follows immediately, so that its cost is kept free for a moment.
    pub(crate) leaves_claim: bool,
}

impl Turn {
    /// The turn of a new request, behind every request that waits.
    pub(crate) const LAST: Self = Self::request(u64::MAX);

    pub(crate) const fn request(arrival: u64) -> Self {
        Self { kind: Kind::Request, priority: Priority::NORMAL, flow: 0, arrival }
    }

    pub(crate) const fn gate(arrival: u64) -> Self {
        Self { kind: Kind::Gate, ..Self::request(arrival) }
    }

    /// Sets the priority and the flow.
    pub(crate) const fn within(self, priority: Priority, flow: u64) -> Self {
        Self { priority, flow, ..self }
    }

    pub(crate) fn arrival(self) -> u64 {
        self.arrival
    }

    /// Returns whether it goes before a turn in another queue: it has a higher priority or, at the same
    /// priority, an earlier arrival. In this order no two requests wait for each other.
    pub(super) fn is_before(self, other: Self) -> bool {
        let order = |turn: Self| (turn.priority, Reverse(turn.arrival));
        order(self) > order(other)
    }

    pub(crate) fn is_gate(self) -> bool {
        self.kind == Kind::Gate
    }

    /// Returns whether both are turns of one flow.
    pub(super) fn is_of_flow(self, other: Self) -> bool {
        (self.priority, self.flow) == (other.priority, other.flow)
    }

    /// Returns whether it comes before another turn of its flow. A call comes before its gate.
    pub(super) fn is_before_in_flow(self, other: Self) -> bool {
        self.is_of_flow(other) && (self.arrival, self.kind) < (other.arrival, other.kind)
    }
}

impl Default for Service {
    fn default() -> Self {
        Self { unit: 0, amounts: NO_AMOUNTS, weight: 1, max_starvation: Duration::from_secs(30) }
    }
}
