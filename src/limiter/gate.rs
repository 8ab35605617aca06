use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;

use super::entry::{Entry, Locked};
use crate::clock::Sleep;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::key::queue::Turn;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// A gate that opens when a request under one or several keys would be admitted. It reserves nothing, so
/// that a service can poll it in `poll_ready`.
///
/// Any number of gates can wait for a key. The first one is woken and, once it has passed, wakes the
/// next. If a gate isn't polled when its turn has come, the next one passes a quarter of a second later.
///
/// # Cancel safety
/// Dropping a gate gives up its place and wakes the next gate.
pub struct Gate {
    keys: SmallVec<[KeyGate; 1]>,
}

/// The gate of one key. It is idle (without a `place`) or waits; [`check`](Self::check) changes between
/// the two states.
struct KeyGate {
    entry: Arc<Entry>,
    place: Option<GatePlace>,
    timer: Option<(Timestamp, Sleep)>,
}

/// A place among the gates of a key.
#[derive(Debug, Clone, Copy)]
struct GatePlace {
    turn: Turn,
    since: Timestamp,
}

/// The result of a check of a key.
enum GateState {
    Open,
    /// The gate has to check the key again when it is woken, or at this time.
    Shut(Option<Timestamp>),
}

impl Gate {
    pub(super) fn new(entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        let gate = |entry| KeyGate { entry, place: None, timer: None };
        Self { keys: entries.into_iter().map(gate).collect() }
    }

    /// Polls whether a request of the `typical` cost would be admitted: no key cools down or has waiting
    /// requests, and the cost fits under each. A cost above a limit's capacity is taken as that capacity.
    ///
    /// With a `patience`, it is also ready as soon as the wait would be longer than that, counted from the
    /// first poll, or unknown: the request itself then gets the error.
    pub fn poll_open(
        &mut self,
        typical: &Cost,
        patience: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // All keys are checked again, since one that was open a moment ago may be shut now.
        self.keys
            .iter_mut()
            .map(|key| key.poll_open(typical, patience, cx))
            .find(Poll::is_pending)
            .unwrap_or(Poll::Ready(()))
    }
}

impl KeyGate {
    fn poll_open(
        &mut self,
        typical: &Cost,
        patience: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            let until = match self.check(typical, patience, cx.waker()) {
                GateState::Open => return Poll::Ready(()),
                GateState::Shut(None) => return Poll::Pending,
                GateState::Shut(Some(until)) => until,
            };
            if self.timer.as_ref().is_none_or(|(set, _)| *set != until) {
                let clock = &self.entry.core.clock;
                self.timer = Some((until, clock.sleep_until(until)));
            }
            let (_, sleep) = self.timer.as_mut().expect("was set above");
            std::task::ready!(sleep.as_mut().poll(cx));
            self.timer = None;
        }
    }

    fn check(&mut self, typical: &Cost, patience: Option<Duration>, waker: &Waker) -> GateState {
        let Self { entry, place, .. } = self;
        let mut key = entry.lock();
        let (core, now) = (&entry.core, key.now());
        let typical = key.full_plan().clip(typical);
        let since = place.map_or(now, |place| place.since);
        let ends = patience.map(|patience| since + patience);
        let wait = match key.check(&typical) {
            _ if !core.is_fast() || key.is_retired() => None,
            Ok(()) if ends.is_some_and(|ends| ends <= now) => None,
            Ok(()) if place.is_some_and(|place| is_behind(&key, place.turn)) => Some(Wait::At(now)),
            Ok(()) => None,
            Err(denial) => within(denial, patience, since),
        };
        match wait {
            None => {
                if let Some(GatePlace { turn, .. }) = place.take() {
                    pass(&mut key, turn);
                }
                GateState::Open
            }
            Some(wait) => {
                let turn =
                    place.map_or_else(|| Turn::gate(core.next_arrival()), |place| place.turn);
                *place = Some(GatePlace { turn, since });
                let rank = enter(&mut key, turn, waker, &typical);
                let recovers = key.recovers_at().filter(|_| wait == Wait::Unknown);
                GateState::Shut(due(recovers.map_or(wait, Wait::At), rank, now, ends))
            }
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.iter().map(|key| &key.entry.key).collect();
        f.debug_struct("Gate").field("keys", &keys).finish_non_exhaustive()
    }
}

impl Drop for KeyGate {
    fn drop(&mut self) {
        let Some(GatePlace { turn, .. }) = self.place else { return };
        self.entry.lock().leave(turn);
    }
}

/// Returns the wait, unless the gate opens because the request itself gets the error.
fn within(denial: Denial, patience: Option<Duration>, since: Timestamp) -> Option<Wait> {
    match (denial.wait(), patience) {
        (Wait::Never, _) | (Wait::Unknown, Some(_)) => None,
        (Wait::At(time), Some(patience)) => {
            let wait = time - since;
            (wait <= patience).then_some(Wait::At(time))
        }
        (wait, None) => Some(wait),
    }
}

/// Returns whether another gate is first and still has to wait. If the first gate could have passed and
/// hasn't, its caller no longer polls it.
fn is_behind(key: &Locked<'_>, turn: Turn) -> bool {
    let rank = key.queue().and_then(|queue| queue.rank(turn));
    let is_short = |cost: &Cost| key.check(cost).is_err();
    rank.is_some_and(|rank| rank > 0) && key.gate_cost().is_some_and(is_short)
}

/// Enters the queue, or keeps the place in it. Returns the number of gates before this one.
fn enter(key: &mut Locked<'_>, turn: Turn, waker: &Waker, typical: &Cost) -> usize {
    key.enter(turn, waker);
    let rank = key.queue().and_then(|queue| queue.rank(turn)).unwrap_or_default();
    if rank == 0 {
        key.set_gate_cost(typical.clone());
    }
    rank
}

/// Returns the time of the next check without being woken. Gates behind the first one check a little
/// later, in case the first is no longer polled.
fn due(wait: Wait, rank: usize, now: Timestamp, ends: Option<Timestamp>) -> Option<Timestamp> {
    let own = match (wait, rank) {
        (Wait::At(time), _) => Some(time),
        (_, 0) => None,
        _ => Some(now),
    };
    let late = GRACE.saturating_mul(rank.try_into().unwrap_or(u32::MAX));
    own.map(|own| own + late).into_iter().chain(ends).min()
}

/// Passes the gate. If another gate is first, it wasn't polled in time and loses its place.
fn pass(key: &mut Locked<'_>, turn: Turn) {
    let first = key.queue().and_then(|queue| queue.first_gate());
    if let Some(first) = first.filter(|first| *first < turn) {
        key.leave(first);
    }
    key.leave(turn);
}

/// The time after which the next gate passes in place of one that isn't polled.
const GRACE: Duration = Duration::from_millis(250);
