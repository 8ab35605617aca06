//! Waiters that are no longer polled.
//!
//! A task can keep a future or a service without polling it. So each waiter that others wait behind is polled
//! again soon: its timer wakes it. One that isn't, while others are, is *absent*: it leaves the
//! queue, and enters again at its place when it is polled. Nobody waits behind it meanwhile.
//!
//! A waiter that is alone has no such timer. The next arrival wakes it. Nor is a waiter polled before the limits
//! can admit it, as long as they can't admit any other either: the queue is *quiet* then, perhaps for a day. Whatever
//! ends that early wakes all.

use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;

use super::contact::{Contact, FIRST_PERIOD, GRACE, PERIOD_EACH, count, poll_period};
use super::{Turn, WaitQueue};
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
    /// Notes that a waiter, or a request that asks, was polled, which can't be admitted before `not_before`. Returns
    /// the time by which it has to be polled again, unless nobody could wait behind it. [`is_disturbed`] says whether
    /// others are to be woken.
    ///
    /// [`is_disturbed`]: Self::is_disturbed
    pub(crate) fn on_polled(
        &mut self,
        turn: Turn,
        not_before: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.note_poll(turn, now);
        let is_alone = self.waiters() == 1 && self.asking.is_empty();
        let period = self.period(turn);
        let is_expected = !is_alone || self.asking.contains(turn);
        let is_far = not_before > self.soon(now);
        let is_quiet = is_far && self.busy_until <= now;
        let polls_by = if is_quiet { not_before } else { now } + period;
        if is_quiet && is_expected {
            self.quiet_until = self.quiet_until.max(not_before);
        }
        if !is_far {
            // It is polled again within this time, if it still waits.
            self.busy_until = self.busy_until.max(now + period + GRACE);
        }
        let Some(contact) = self.contact_mut(turn) else {
            // It returns to the queue then.
            return Some(now + period);
        };
        contact.polls_by = if is_expected { polls_by } else { Timestamp::MAX };
        (contact.polled_at, contact.present_until) = (now, now + period + GRACE);
        is_expected.then_some(polls_by)
    }

    /// Returns the time after which a waiter has to be polled again, unless the queue is quiet.
    pub(crate) fn period(&self, turn: Turn) -> Duration {
        poll_period(self.rank(turn), self.waiters())
    }

    /// Returns the time up to which a wait is short: waking all waiters after it is cheaper than polling them meanwhile.
    pub(crate) fn soon(&self, now: Timestamp) -> Timestamp {
        now + (PERIOD_EACH * 4).saturating_mul(count(self.waiters())).max(Duration::from_secs(1))
    }

    /// Returns whether waiters are quiet although one may be admitted soon, so that [`next`](Self::next) is to wake them.
    pub(crate) fn is_disturbed(&self, now: Timestamp) -> bool {
        now < self.busy_until && self.is_quiet(now)
    }

    /// Notes that a waiter, or a request that asks, is being polled, before others are taken for absent. It isn't absent
    /// itself.
    pub(crate) fn note_poll(&mut self, turn: Turn, now: Timestamp) {
        let mut is_late = false;
        if let Some(contact) = self.contact_mut(turn) {
            is_late = contact.polls_by.saturating_add(GRACE) < now;
            contact.polls_by = contact.polls_by.max(now);
            contact.polled_at = now;
        }
        if is_late {
            self.resume(now);
        }
        self.polled_at = self.polled_at.max(now);
    }

    /// Notes that a waiter arrives. Returns whether [`next`](Self::next) is to wake the one that was alone, so that it
    /// is polled again from now on.
    pub(crate) fn on_arrival(&mut self, now: Timestamp) -> bool {
        if self.polled_at + FIRST_PERIOD + GRACE < now {
            self.resume(now);
        }
        self.polled_at = self.polled_at.max(now);
        self.waiters() == 1
    }

    /// Notes that a request was refused because others wait. Returns whether [`next`](Self::next) is to wake them,
    /// since nobody polls the first.
    pub(crate) fn on_try(&mut self, now: Timestamp) -> bool {
        let Some(contact) = self.head().and_then(|head| self.contact(head)) else { return false };
        // It isn't polled while it is alone, or quiet.
        if contact.polls_by > now {
            return contact.polled_at + LONG_GRACE < now;
        }
        if contact.polls_by + LONG_GRACE < now {
            self.polled_at = self.polled_at.max(now);
        }
        false
    }

    /// Returns whether waiters aren't polled for a while.
    pub(crate) fn is_quiet(&self, now: Timestamp) -> bool {
        now < self.quiet_until
    }

    /// Notes that the program may have stood still until now.
    fn resume(&mut self, now: Timestamp) {
        self.resumed_at = [self.resumed_at[1], now];
    }

    fn contact_mut(&mut self, turn: Turn) -> Option<&mut Contact> {
        if self.asking.contains(turn) {
            return self.asking.contact_mut(turn);
        }
        self.band_mut(turn.priority)?.contact_mut(turn)
    }

    /// Returns the wakers of the head and, as a gate may have been forgotten by its owner, of the first request
    /// behind gates; of all waiters if they are quiet. They are to be called: the head is then polled soon, unless it
    /// is absent.
    pub(crate) fn next(&mut self, now: Timestamp) -> SmallVec<[Waker; 2]> {
        if self.is_quiet(now) {
            let polls_by = now + FIRST_PERIOD + PERIOD_EACH.saturating_mul(count(self.waiters()));
            self.quiet_until = Timestamp::UNIX_EPOCH;
            self.busy_until = self.busy_until.max(polls_by + GRACE);
            for contact in self.bands.iter_mut().flat_map(|band| band.contacts_mut()) {
                contact.polls_by = contact.polls_by.min(polls_by);
            }
            return self.in_order().map(|(_, waker)| waker.clone()).collect();
        }
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
        self.absent_head().is_some() || self.absent_asker().is_some()
    }

    /// Removes absent waiters from the head of the queue, and absent requests that ask.
    pub(crate) fn remove_absent(&mut self, now: Timestamp) -> Absent {
        let mut absent = Absent::default();
        while let Some(turn) = self.absent_asker() {
            let answered = self.asking.abandon(turn).expect("an absent request asks");
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
        self.has_missed(contact, Duration::ZERO).then_some(self.head()?)
    }

    fn absent_asker(&self) -> Option<Turn> {
        let mut asking = self.asking.contacts();
        asking.find_map(|(turn, contact, is_in_turn)| {
            let late = if is_in_turn { Duration::ZERO } else { OUT_OF_TURN };
            self.has_missed(contact, late).then_some(turn)
        })
    }

    /// Returns whether a waiter is absent, which should have been polled by its time or this much later. If the whole
    /// program stood still for a while, it has some time after that, but not once more after each further one.
    fn has_missed(&self, contact: &Contact, late: Duration) -> bool {
        let [first, last] = self.resumed_at;
        let resumed_at = if contact.polled_at < first { first } else { last };
        is_absent(contact.polls_by.saturating_add(late).max(resumed_at), self.polled_at)
    }
}

/// Returns whether a waiter that should have been polled by this time is absent: another one was polled clearly
/// later.
pub(crate) fn is_absent(polls_by: Timestamp, polled_at: Timestamp) -> bool {
    polls_by.saturating_add(GRACE) < polled_at
}

/// The time by which it may be late if only requests that don't wait show that the program runs.
const LONG_GRACE: Duration = Duration::from_secs(1);

/// The time by which a request may be late that asks out of turn. No turn depends on it. In a slow program many are late:
/// if they gave their grants back and asked again, others would be refused meanwhile. A request that nobody polls
/// any more holds its grant and its slot for this time.
const OUT_OF_TURN: Duration = Duration::from_secs(10);
