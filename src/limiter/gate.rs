use std::fmt;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;

use super::clock::{Sleep, nanos};
use super::handle::KeyHandle;
use super::line::{Line, Wakers};
use super::slot::{Denial, Slot};
use crate::engine::Wait;
use crate::quota::Cost;

/// Says when a request of one or several keys would be let in, and takes nothing: what a service
/// asks in `poll_ready`.
///
/// Any number of gates can wait for a key; the first is woken and, once through, wakes the next. One
/// that isn't polled when its time has come loses its place to the next, a quarter of a second
/// later.
///
/// # Cancel safety
/// Dropping a gate gives up its place and hands on.
pub struct Gate {
    keys: SmallVec<[KeyGate; 1]>,
}

/// The gate of one key.
struct KeyGate {
    key: KeyHandle,
    waiting: Option<Waiting>,
    timer: Option<(u64, Sleep)>,
}

/// A place among the gates of a key.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    number: u64,
    since: u64,
}

impl Gate {
    pub(super) fn new(keys: impl IntoIterator<Item = KeyHandle>) -> Self {
        let gate = |key| KeyGate { key, waiting: None, timer: None };
        Self { keys: keys.into_iter().map(gate).collect() }
    }

    /// Ready when, for each key, nobody waits, it isn't cooling down, and a request of the `typical`
    /// cost would be let in (or of all that a limit holds, if that is less).
    ///
    /// With a `patience` it is also ready as soon as that would take longer, counted from the first
    /// poll, or nobody knows how long: let the request itself find out.
    pub fn poll_open(
        &mut self,
        typical: &Cost,
        patience: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // Each is asked anew: one that was open a moment ago may be shut by now.
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
            let Some(until) = std::task::ready!(self.look(typical, patience, cx.waker())) else {
                return Poll::Ready(());
            };
            if self.timer.as_ref().is_none_or(|(set, _)| *set != until) {
                let clock = &self.key.place().shard.core.clock;
                self.timer = Some((until, clock.sleep_until(until)));
            }
            let (_, sleep) = self.timer.as_mut().expect("was set above");
            std::task::ready!(sleep.as_mut().poll(cx));
            self.timer = None;
        }
    }

    /// `Ready(None)`: open. `Ready(Some(time))`: look again then. `Pending`: look again when woken.
    fn look(
        &mut self,
        typical: &Cost,
        patience: Option<Duration>,
        waker: &Waker,
    ) -> Poll<Option<u64>> {
        let Self { key, waiting, .. } = self;
        let (place, core) = (key.place(), &key.place().shard.core);
        let (mut keys, now) = place.shard.lock();
        let slot = &mut keys.slots[place.slot];
        let typical = slot.full().clip(typical);
        let since = waiting.map_or(now, |waiting| waiting.since);
        let ends = patience.map(|patience| after(since, patience));
        let wait = match slot.check(&typical, now) {
            _ if core.is_closed() || core.backend.is_some() || slot.is_moved() => None,
            Ok(()) if ends.is_some_and(|ends| ends <= now) => None,
            Ok(()) if waiting.is_some_and(|waiting| is_behind(slot, waiting.number, now)) => {
                Some(Wait::At(now))
            }
            Ok(()) => None,
            Err(denial) => within(denial, patience, since),
        };
        let mut wakers = Wakers::default();
        let next = match wait {
            None => {
                if let Some(Waiting { number, .. }) = waiting.take() {
                    pass(slot, number, now, &mut wakers);
                }
                Poll::Ready(None)
            }
            Some(wait) => {
                let number = waiting.map_or_else(|| core.arrival(), |waiting| waiting.number);
                *waiting = Some(Waiting { number, since });
                let rank = stay(slot, number, (waker, &typical), &mut wakers);
                let recovers = slot.recovers_at().filter(|_| wait == Wait::Unknown);
                let until = due(recovers.map_or(wait, Wait::At), rank, now, ends);
                until.map_or(Poll::Pending, |until| Poll::Ready(Some(until)))
            }
        };
        drop(keys);
        wakers.ring();
        next
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.iter().map(|key| key.key.key()).collect();
        f.debug_struct("Gate").field("keys", &keys).finish_non_exhaustive()
    }
}

impl Drop for KeyGate {
    fn drop(&mut self) {
        let Some(Waiting { number, .. }) = self.waiting else { return };
        let place = self.key.place();
        let (mut keys, now) = place.shard.lock();
        let mut wakers = Wakers::default();
        leave(&mut keys.slots[place.slot], number, now, &mut wakers);
        drop(keys);
        wakers.ring();
    }
}

/// The wait, unless it is none of the gate's business.
fn within(denial: Denial, patience: Option<Duration>, since: u64) -> Option<Wait> {
    match (denial.wait(), patience) {
        (Wait::Never, _) | (Wait::Unknown, Some(_)) => None,
        (Wait::At(time), Some(patience)) => {
            let wait = Duration::from_nanos(time.saturating_sub(since));
            (wait <= patience).then_some(Wait::At(time))
        }
        (wait, None) => Some(wait),
    }
}

/// Whether another gate is first and still has to wait: its turn isn't over. One that could have
/// gone through, and hasn't, was forgotten by whoever polled it.
fn is_behind(slot: &mut Slot, number: u64, now: u64) -> bool {
    let line = slot.line();
    let first = line.gates.is_first(number) || line.gates.rank(number).is_err();
    let wanted = line.wanted.clone();
    !first && wanted.is_some_and(|wanted| slot.check(&wanted, now).is_err())
}

/// Keeps its place, or takes a new one at the end; says how many are before it.
fn stay(
    slot: &mut Slot,
    number: u64,
    (waker, typical): (&Waker, &Cost),
    wakers: &mut Wakers,
) -> usize {
    let Line { gates, wanted, .. } = slot.line();
    wakers.drop_later(gates.set_waker(number, waker));
    gates.enter(number, waker);
    let rank = gates.rank(number).unwrap_or_default();
    if rank == 0 {
        *wanted = Some(typical.clone());
    }
    rank
}

/// When to look again without being woken. Those behind the first look a little later than it: it
/// may have been forgotten.
fn due(wait: Wait, rank: usize, now: u64, patience: Option<u64>) -> Option<u64> {
    let own = match (wait, rank) {
        (Wait::At(time), _) => Some(time),
        (_, 0) => None,
        _ => Some(now),
    };
    let late = GRACE.saturating_mul(rank.try_into().unwrap_or(u64::MAX));
    own.map(|own| own.saturating_add(late)).into_iter().chain(patience).min()
}

/// Goes through. Whoever is first instead hasn't come in time, and loses its place.
fn pass(slot: &mut Slot, number: u64, now: u64, wakers: &mut Wakers) {
    let line = slot.line();
    if line.gates.rank(number).is_ok_and(|rank| rank > 0) {
        line.wanted = None;
        wakers.drop_later(line.gates.remove_first());
        wakers.wake(slot.next_up());
    }
    leave(slot, number, now, wakers);
}

/// Gives a place up, and hands on if it was the first.
fn leave(slot: &mut Slot, number: u64, now: u64, wakers: &mut Wakers) {
    let Some(line) = slot.there() else { return };
    let (was_first, own) = line.gates.remove(number);
    if was_first {
        line.wanted = None;
    }
    wakers.drop_later(own);
    wakers.wake(slot.next_up().filter(|_| was_first));
    slot.tidy(now);
}

fn after(since: u64, patience: Duration) -> u64 {
    since.saturating_add(nanos(patience))
}

/// How long a gate may be late before the next one goes through instead, in nanoseconds.
const GRACE: u64 = 250_000_000;
