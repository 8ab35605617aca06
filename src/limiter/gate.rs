use std::fmt;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::clock::Sleep;
use super::shard::Place;
use super::slot::{Denial, Slot};
use crate::engine::Wait;
use crate::quota::Cost;

/// Says when a request of a key would be let in, and takes nothing: what a service asks in
/// `poll_ready`.
///
/// Any number of gates can wait for one key; the first is woken and, once through, wakes the next.
///
/// # Cancel safety
/// Dropping a gate gives up its place and hands on. One that is pending, and kept without being
/// polled, holds up those behind it; one that was ready holds up nobody.
pub struct Gate {
    place: Place,
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
    pub(super) fn new(place: Place) -> Self {
        Self { place, waiting: None, timer: None }
    }

    /// Ready when nobody waits for the key, it isn't cooling down, and a request of the `typical`
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
        loop {
            let until = std::task::ready!(self.look(typical, patience, cx.waker()));
            let Some(until) = until else { return Poll::Ready(()) };
            if self.timer.as_ref().is_none_or(|(set, _)| *set != until) {
                self.timer = Some((until, self.place.shard.core.clock.sleep_until(until)));
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
        let core = &self.place.shard.core;
        let (mut keys, now) = self.place.shard.lock();
        let slot = &mut keys.slots[self.place.slot];
        let since = self.waiting.map_or(now, |waiting| waiting.since);
        let wait = match slot.check(&slot.plan.clip(typical), now) {
            _ if core.is_closed() || core.backend.is_some() => None,
            Ok(()) => None,
            Err(denial) => within(denial, patience, since),
        };
        let Some(wait) = wait else {
            let left = self.waiting.take().map(|waiting| leave(slot, waiting.number));
            drop(keys);
            left.and_then(|(next, _)| next).into_iter().for_each(Waker::wake);
            return Poll::Ready(None);
        };
        let gates = &mut slot.line().gates;
        let mut old = None;
        let first = match self.waiting {
            Some(Waiting { number, .. }) => {
                old = gates.set_waker(number, waker);
                gates.is_first(number)
            }
            None => {
                let first = gates.is_empty();
                let number = slot.line().draw();
                slot.line().gates.push(number, waker);
                self.waiting = Some(Waiting { number, since });
                first
            }
        };
        drop(keys);
        drop(old);
        match (wait, patience) {
            (Wait::At(time), _) if first => Poll::Ready(Some(time)),
            // Those in front may have more patience.
            (_, Some(patience)) => Poll::Ready(Some(after(since, patience))),
            _ => Poll::Pending,
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("key", &self.place.key()).finish_non_exhaustive()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let Some(Waiting { number, .. }) = self.waiting else { return };
        let (mut keys, _) = self.place.shard.lock();
        let (next, _own) = leave(&mut keys.slots[self.place.slot], number);
        drop(keys);
        next.into_iter().for_each(Waker::wake);
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

fn after(since: u64, patience: Duration) -> u64 {
    since.saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX))
}

/// Gives a place up; whom to wake then, if it was the first, and the place's own waker, to be
/// dropped without the lock.
fn leave(slot: &mut Slot, number: u64) -> (Option<Waker>, Option<Waker>) {
    let (was_first, own) = slot.line().gates.remove(number);
    (slot.next_up().filter(|_| was_first), own)
}
