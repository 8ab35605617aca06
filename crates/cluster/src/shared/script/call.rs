use paceline_limiter::engine::Rule;
use smallvec::SmallVec;

use super::view::{Amounts, Id, View};
use crate::shared::server_clock::Jump;

/// Returns the channel on which a process gets the ids of its requests that should ask again.
pub(crate) fn wake_channel(process: u64) -> String {
    format!("paceline:wake:{process:016x}")
}

/// One call of the script, on keys of one cluster slot.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    pub(crate) operation: Operation,
    pub(crate) id: Id,
    pub(crate) time: ServerTime,
    /// The generation of the server's data that has all usage of this process. If the server has another one,
    /// a call on a state that this process has not seen is not executed. 0 if that doesn't matter.
    pub(crate) generation: u64,
    pub(crate) parts: &'a [Part<'a>],
}

/// The operation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Reserves the amounts in all parts or in none. A repeated call returns the first grant. The
    /// reservation lasts `ttl` microseconds; if it is not renewed or ended by then, its amounts
    /// count as used. A request that `waits` is queued if it is refused, and takes precedence over
    /// those whose turn is later by their `order`. Without another such call its ticket expires
    /// after a second. Its process gets a message on the channel
    /// [`wake_channel`](super::wake_channel) when it may be granted.
    Reserve { ttl: u64, waits: bool, order: Order },
    /// Settles the reservation with the amounts of the parts. `unsure` means that it is unknown
    /// whether the reserve call was executed; a late copy of that call is then refused.
    Settle { unsure: bool },
    /// Releases the reservation of a request that was never sent.
    Release { unsure: bool },
    /// Renews the reservation for `ttl` microseconds. With `restores`, a reservation that the
    /// server lost, and that has not ended, is restored with the amounts of the parts: concurrency
    /// slots are held again; all other amounts already count as used, and are never refunded.
    Renew { ttl: u64, restores: bool },
    /// Charges the amounts of the parts unconditionally, once per id.
    Charge,
    /// Renews a lease in each part, independently of the others: settles it with `amounts`, holds
    /// `inflight` and as much of `wanted` as is available (at least `least` of each, or none) under its id
    /// for `ttl` microseconds. The lease is `Unknown` if it no longer exists, unless this is its first call
    /// or the call reports neither usage nor amounts in flight.
    Lease { ttl: u64 },
    /// Returns a lease: settles it with the amounts of the parts, and ends its holds.
    Return,
    /// Reads the state, and restores the usage of the views if the server has lost it.
    Read,
    /// Resets the state of the parts, including buckets that the call does not name; holds stay.
    /// Executed once per id.
    Reset,
}

/// The order of a request among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(super) priority: i8,
    /// A hash of the flow's name, the same in all processes; 0 for requests without one.
    pub(super) flow: u64,
    pub(super) weight: u32,
    /// The time after which a lower priority has a turn, in microseconds.
    pub(super) max_starvation: u64,
}

impl Order {
    /// The order of requests without priority and flow.
    pub(crate) const ARRIVAL: Self =
        Self { priority: 0, flow: 0, weight: 1, max_starvation: 30_000_000 };
}

/// One key of a call, and its buckets.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    /// The Redis key of the state, hash tag included.
    pub(crate) name: &'a [u8],
    /// The rules, with one bucket each.
    pub(crate) rules: &'a [Rule],
    /// The amount of each rule; the operation defines its meaning.
    pub(crate) amounts: Amounts,
    /// The amounts of each rule in a lease call.
    pub(crate) lease: Option<&'a LeaseRequest>,
    /// The last state that this process knew, if any. Without amounts it only identifies the state,
    /// and the response is `Lost` if the server has another one; with amounts, missing usage is
    /// restored.
    pub(crate) view: Option<&'a View>,
    /// True if the response should state the times of use. Ignored if the view has amounts.
    pub(crate) wants_uses: bool,
}

impl Part<'_> {
    /// Returns true if the response states the times of use.
    pub(super) fn asks_for_uses(&self) -> bool {
        self.wants_uses && self.view.is_none_or(|view| view.buckets.is_empty())
    }
}

/// The amounts that a lease call requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeaseRequest {
    /// The id of the lease.
    pub(crate) id: Id,
    /// The number of this call for the lease, from 1: a repeated call returns the first response,
    /// and a call that arrives after a later one has no effect.
    pub(crate) call_number: u32,
    /// The number of the first call that reported this usage: if the server has executed it or a
    /// later one, `amounts` are settled already.
    pub(crate) first_report: u32,
    pub(crate) inflight: Amounts,
    pub(crate) least: Amounts,
    pub(crate) wanted: Amounts,
}

/// The time that this process expects the server's clock to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerTime {
    /// The last known server time plus the time that has passed since; 0 if unknown.
    pub(crate) expected: u64,
    /// The changes by which the server's clock was set forward, as found by earlier responses.
    pub(crate) jumps: SmallVec<[Jump; 1]>,
}

/// The maximum of amounts and rates, such that sums of several are exact in the script. Larger
/// values are capped.
pub(crate) const MAX_AMOUNT: u64 = 1 << 50;
