//! Waiters that are no longer polled.
//!
//! A task can keep a future or a service without polling it. So each waiter that others wait behind is polled
//! again soon: its timer wakes it. One that isn't, while others are, is *absent*: it leaves the
//! queue, and enters again at its place when it is polled. Nobody waits behind it meanwhile.
//!
//! A waiter that is alone has no such timer. The next arrival wakes it.

use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;

use super::{Asking, Turn, WaitQueue};
use crate::timestamp::Timestamp;

/// Waiters that have left the queue because they are absent.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    /// Their wakers, to be dropped without a lock.
    pub(crate) spent: Vec<Waker>,
    /// The wakers of the granted requests that need no longer wait for them.
    pub(crate) due: Vec<Waker>,
}

impl WaitQueue {
    /// Notes that a waiter, or a request that asks, was polled. Returns the time by which it has to be polled
    /// again, unless nobody could wait behind it.
    pub(crate) fn on_polled(&mut self, turn: Turn, now: Timestamp) -> Option<Timestamp> {
        self.polled_at = self.polled_at.max(now);
        let is_alone = self.waiters() == 1 && self.asking.is_empty();
        let polls_by = now + poll_period(self.rank(turn), self.waiters());
        if self.asking.set_polls_by(turn, polls_by) {
            return Some(polls_by);
        }
        let contact = self.band_mut(turn.priority)?.contact_mut(turn)?;
        contact.polls_by = if is_alone { Timestamp::MAX } else { polls_by };
        (!is_alone).then_some(polls_by)
    }

    /// Expects a waiter that is alone to be polled soon, since another one arrives. Returns whether it is to be
    /// woken.
    pub(crate) fn expects_another(&mut self, now: Timestamp) -> bool {
        self.polled_at = self.polled_at.max(now);
        self.waiters() == 1
    }

    /// Returns the wakers of the head and, as a gate may have been forgotten by its owner, of the first request
    /// behind gates. They are to be called: the head is then polled soon, unless it is absent.
    pub(crate) fn next(&mut self, now: Timestamp) -> SmallVec<[Waker; 2]> {
        let head = self.head();
        let polls_by = now + poll_period(0, 0);
        if let Some(head) = head
            && let Some(contact) =
                self.band_mut(head.priority).and_then(|band| band.contact_mut(head))
        {
            contact.polls_by = contact.polls_by.min(polls_by);
        }
        let request = head.filter(|head| head.is_gate()).and_then(|_| self.first_request());
        let next = head.into_iter().chain(request);
        next.filter_map(|turn| self.waker(turn).cloned()).collect()
    }

    /// Returns whether the head, or a request that asks, is absent.
    #[inline]
    pub(crate) fn has_absent(&self) -> bool {
        self.absent_head().is_some() || self.asking.absent(self.polled_at).is_some()
    }

    /// Removes absent waiters from the head of the queue, and absent requests that ask.
    pub(crate) fn remove_absent(&mut self, now: Timestamp) -> Absent {
        let mut absent = Absent::default();
        while let Some(turn) = self.asking.absent(self.polled_at) {
            let answered = self.asking.cancel(turn).expect("an absent request asks");
            absent.spent.push(answered.waker);
            absent.due.extend(answered.due);
        }
        while let Some(turn) = self.absent_head() {
            let left = self.remove(turn, now).expect("the head is in the queue");
            absent.spent.push(left.waker);
        }
        absent
    }

    /// Returns about how many go before a waiter: none before the head and requests that ask, before others those
    /// of their flow, and one of each other flow.
    fn rank(&self, turn: Turn) -> usize {
        if self.is_head(turn) || !self.contains(turn) {
            return 0;
        }
        let band = self.bands.iter().find(|band| band.priority == turn.priority);
        let flows = self.bands.iter().map(|band| band.flows()).sum::<usize>();
        band.and_then(|band| band.rank_in_flow(turn)).unwrap_or(0) + flows.saturating_sub(1)
    }

    fn absent_head(&self) -> Option<Turn> {
        let contact = self.contact(self.head()?)?;
        is_absent(contact.polls_by, self.polled_at).then_some(self.head()?)
    }
}

impl Asking {
    /// Returns an absent request, if there is one.
    fn absent(&self, polled_at: Timestamp) -> Option<Turn> {
        self.polls_by().find_map(|(turn, by)| is_absent(by, polled_at).then_some(turn))
    }
}

/// Returns whether a waiter that should have been polled by this time is absent: another one was polled clearly
/// later. So if a whole program stands still for a while, nobody is absent.
pub(crate) fn is_absent(polls_by: Timestamp, polled_at: Timestamp) -> bool {
    polls_by.saturating_add(GRACE) < polled_at
}

/// Returns the time after which a waiter has to be polled again: the longer, the more go before it. Any number of
/// them is polled about 200 times a second in all.
pub(crate) fn poll_period(rank: usize, waiters: usize) -> Duration {
    let [rank, waiters] = [rank, waiters].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let more = (FIRST_PERIOD / 64).saturating_mul(rank.saturating_mul(rank));
    FIRST_PERIOD + more.min(Duration::from_millis(5).saturating_mul(waiters))
}

/// The time after which the first waiter has to be polled again.
const FIRST_PERIOD: Duration = Duration::from_millis(250);

/// The time by which a poll may be late.
const GRACE: Duration = Duration::from_millis(100);
