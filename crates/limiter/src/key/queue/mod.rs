//! The queue of one key: requests and gates in the order of their turns.
//!
//! The order has three levels: the highest [`Priority`] first, within it the flow that has had the
//! least service for its weight (start-time fair queuing), within a flow the order of arrival. With
//! one priority and one flow that is first in, first out.
//!
//! - The flow that was chosen stays the head until one of its waiters is admitted or it has none: the
//!   buckets fill for it. Only a waiter with a higher priority takes its place, but not in a turn of a
//!   starved priority, and not once the head is older than `max_starvation`.
//! - A priority that has had no turn for `max_starvation` has one turn before the higher ones. The time goes on while
//!   its waiters give up and others come, unless it has none for that long, or nobody waits.
//!
//! Pure: `now` is an argument, and wakers are stored and returned, never called here.

mod asking;
mod band;
mod claims;
mod contact;
mod flow;
mod flow_order;
mod given_up;
mod head;
mod listeners;
mod presence;
mod priority;
mod turn;
mod wakers;

use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;

pub(crate) use self::asking::{Answered, Asking, Attempt, Standing};
use self::band::Band;
pub(crate) use self::claims::{Claimed, Claims};
use self::contact::Contact;
pub(crate) use self::contact::poll_period;
use self::given_up::GivenUp;
use self::head::Head;
pub(crate) use self::presence::{Absent, is_absent};
pub use self::priority::{Priority, PriorityError};
use self::turn::Kind;
pub(crate) use self::turn::{Amounts, GateTerms, NO_AMOUNTS, Service, Turn};
pub(crate) use self::wakers::Wakers;
use crate::timestamp::Timestamp;

/// The waiters of one key, and listeners that wait in the queue of another key.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    /// The priorities with waiters, highest first.
    bands: SmallVec<[Box<Band>; 1]>,
    given_up: GivenUp,
    /// Set as long as there are waiters.
    head: Option<Head>,
    /// The number of flows that were the head.
    heads: u64,
    /// Requests that have left the queue to ask a backend.
    asking: Asking,
    max_starvation: Duration,
    /// The time at which a waiter last arrived or was polled.
    polled_at: Timestamp,
    /// The last two times at which waiters were polled again after nobody was, although some should have been.
    resumed_at: [Timestamp; 2],
    /// The time until which some waiters aren't polled, unless all are woken.
    quiet_until: Timestamp,
    /// The time until which all waiters are polled.
    busy_until: Timestamp,
    /// Requests in the queue of another of their keys that ask a backend for this key too.
    listeners: Vec<(u64, Waker)>,
}

/// A waiter that has left a queue.
#[derive(Debug)]
pub(crate) struct Left {
    /// It was the head, or the first request behind gates: the next ones are to be woken.
    pub(crate) was_next: bool,
    /// To be dropped without a lock: a waker may own a task, and with it a permit.
    pub(crate) waker: Waker,
}

impl WaitQueue {
    /// Returns whether the queue holds no waiter and no listener, and no request asks.
    pub(crate) fn is_empty(&self) -> bool {
        self.bands.is_empty() && self.listeners.is_empty() && self.asking.is_empty()
    }

    /// Returns the number of requests that wait in the queue.
    pub(crate) fn requests(&self) -> usize {
        self.bands.iter().map(|band| band.requests()).sum()
    }

    /// Returns the number of requests and gates that wait in the queue.
    fn waiters(&self) -> usize {
        self.bands.iter().map(|band| band.waiters()).sum()
    }

    /// Inserts a waiter at the place that its turn is due, or keeps the place that it has. Returns whether it
    /// is another waiter's turn now, which is to be woken: the head was displaced, but by a starved priority.
    pub(crate) fn enter(
        &mut self,
        turn: Turn,
        service: Service,
        gate: Option<GateTerms>,
        waker: &Waker,
        now: Timestamp,
    ) -> bool {
        self.max_starvation = service.max_starvation;
        if self.is_empty() {
            // Requests of any priority can have been served meanwhile.
            self.given_up = GivenUp::default();
        }
        let at = self.bands.partition_point(|band| band.priority > turn.priority);
        if self.bands.get(at).is_none_or(|band| band.priority != turn.priority) {
            let served_at = self.given_up.take(turn.priority, self.max_starvation, now);
            let band = Band::new(turn.priority, served_at.unwrap_or(now));
            self.bands.insert(at, Box::new(band));
        }
        self.bands[at].enter(turn, service, gate, Contact::new(waker.clone(), now));
        if self.head.is_none_or(|head| self.is_displaced(head, turn.priority, now)) {
            self.choose(now);
            return !self.is_head(turn);
        }
        if let Some(head) = self.head.as_mut().filter(|head| turn.is_before_in_flow(head.turn)) {
            head.turn = turn;
        }
        false
    }

    /// Replaces the waker of a waiter that stays. Returns the old one, to be dropped without a lock.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn set_waker(&mut self, turn: Turn, waker: &Waker) -> Option<Waker> {
        self.band_mut(turn.priority)?.contact_mut(turn)?.set_waker(waker)
    }

    /// Removes a waiter. The service of its flow stays as it is.
    #[must_use = "its waker is to be dropped without a lock"]
    pub(crate) fn remove(&mut self, turn: Turn, now: Timestamp) -> Option<Left> {
        let was_head = self.is_head(turn);
        let was_next = was_head || self.first_request() == Some(turn);
        let at = self.bands.iter().position(|band| band.priority == turn.priority)?;
        let band = &mut self.bands[at];
        let (waker, next) = band.remove(turn)?;
        if band.is_empty() {
            self.given_up.note(band.priority, band.served_at, now);
            self.bands.remove(at);
        }
        if let Some(head) = self.head.as_mut().filter(|_| was_head) {
            match next {
                Some(next) => head.turn = next,
                None => self.choose(now),
            }
        }
        Some(Left { was_next, waker })
    }

    /// Removes a waiter that is admitted: its flow is charged, and the turn of the head ends if it is of that
    /// flow.
    #[must_use = "its waker is to be dropped without a lock"]
    pub(crate) fn grant(&mut self, turn: Turn, service: Service, now: Timestamp) -> Option<Left> {
        let head = self.head();
        let was_next = head == Some(turn) || self.first_request() == Some(turn);
        let at = self.bands.iter().position(|band| band.priority == turn.priority)?;
        let band = &mut self.bands[at];
        let waker = band.grant(turn, service)?;
        band.served_at = now;
        if band.is_empty() {
            self.bands.remove(at);
        }
        if head.is_some_and(|head| head.is_of_flow(turn)) {
            self.choose(now);
        }
        Some(Left { was_next: was_next || self.head() != head, waker })
    }

    /// Charges the flow of a request that is admitted without waiting in this queue; the turn of the head
    /// ends if it is of that flow. Returns whether it is another flow's turn now, whose waiter is to be woken.
    pub(crate) fn charge(&mut self, turn: Turn, service: Service, now: Timestamp) -> bool {
        let Some(band) = self.band_mut(turn.priority) else {
            self.given_up.forget(turn.priority);
            return false;
        };
        band.served_at = now;
        band.charge(turn.flow, service);
        let is_of_head = |head: Head| head.turn.is_of_flow(turn);
        if !self.head.is_some_and(is_of_head) {
            return false;
        }
        self.choose(now);
        !self.head.is_some_and(is_of_head)
    }

    /// Moves a request from the queue to those that ask a backend. With `is_in_turn`, it is the head, and its
    /// grant is used in the order of the queue. The next one may ask after [`on_asked`](Self::on_asked).
    pub(crate) fn ask(&mut self, turn: Turn, attempt: Attempt, now: Timestamp) {
        let head = self.head.filter(|head| attempt.is_in_turn && head.turn == turn);
        let Some(Left { waker, .. }) = self.remove(turn, now) else { return };
        if attempt.is_first && self.is_empty() {
            self.asking = Asking::default();
        }
        let contact = Contact::new(waker, now);
        self.asking.begin(turn, head, attempt.is_first, contact);
    }

    /// Notes that the backend was called for a request. `give_back` is called if the request is absent: what it
    /// holds is given back. Returns whether it still asks.
    pub(crate) fn on_asked(&mut self, turn: Turn, give_back: Waker) -> bool {
        self.asking.mark_sent(turn, give_back)
    }

    /// Removes a request that asks: it is admitted or gives up.
    #[must_use = "the wakers are to be called or dropped without a lock"]
    pub(crate) fn end_asking(&mut self, turn: Turn, is_granted: bool) -> Option<Answered> {
        if is_granted {
            self.given_up.forget(turn.priority);
            return self.asking.grant(turn);
        }
        self.asking.cancel(turn)
    }

    /// Returns a request to the queue that was refused: to its turn, unless another waiter may take that.
    #[must_use = "the wakers are to be called or dropped without a lock"]
    pub(crate) fn on_refused(
        &mut self,
        turn: Turn,
        service: Service,
        now: Timestamp,
    ) -> Option<Answered> {
        let (head, answered) = self.asking.refuse(turn)?;
        self.enter(turn, service, None, &answered.waker, now);
        if let (Some(head), Some(next)) = (head, self.head)
            && head.number <= next.number
        {
            // The buckets go on filling for the flow that was chosen before.
            if next.turn.is_of_flow(head.turn) {
                self.head = Some(Head { turn: next.turn, ..head });
            } else if !self.is_displaced(head, next.turn.priority, now) {
                self.head = Some(head);
            }
        }
        Some(answered)
    }

    /// Returns the requests that ask.
    pub(crate) fn asking(&self) -> &Asking {
        &self.asking
    }

    pub(crate) fn asking_mut(&mut self) -> &mut Asking {
        &mut self.asking
    }

    /// Moves all times back, after the clock was set back by this much.
    pub(crate) fn rebase(&mut self, back: Duration) {
        let served = self.bands.iter_mut().map(|band| &mut band.served_at);
        let served = served.chain(self.given_up.times_mut());
        let since = self.head.as_mut().map(|head| &mut head.since);
        let polls = [&mut self.polled_at, &mut self.quiet_until, &mut self.busy_until];
        let times = served.chain(since).chain(polls).chain(&mut self.resumed_at);
        times.for_each(|time| *time = time.saturating_sub(back));
        let waiters = self.bands.iter_mut().flat_map(|band| band.contacts_mut());
        for contact in waiters.chain(self.asking.contacts_mut()) {
            contact.polled_at = contact.polled_at.saturating_sub(back);
            contact.present_until = contact.present_until.saturating_sub(back);
            if contact.polls_by != Timestamp::MAX {
                contact.polls_by = contact.polls_by.saturating_sub(back);
            }
        }
    }

    /// Returns the waiter whose turn it is.
    pub(crate) fn head(&self) -> Option<Turn> {
        self.head.map(|head| head.turn)
    }

    /// Returns the waiter whose turn it is, if it is a gate.
    pub(crate) fn head_gate(&self) -> Option<(Turn, &GateTerms)> {
        let head = self.head().filter(|head| head.is_gate())?;
        Some((head, self.band(head.priority)?.gate_terms(head)?))
    }

    /// Returns the amounts of the requests that go before a new one unless they give up: those of its own
    /// flow. Other flows, and other priorities, may go before or after it.
    pub(crate) fn amounts_before(&self, turn: Turn) -> Option<Amounts<u128>> {
        self.band(turn.priority)?.amounts_before(turn)
    }

    /// Returns the amounts of those of them that aren't overdue for a poll: the others may be passed.
    pub(crate) fn amounts_present(&self, turn: Turn, now: Timestamp) -> Amounts<u128> {
        self.band(turn.priority).map_or([0; 4], |band| band.amounts_present(turn, now))
    }

    /// Returns the number of waiters of its flow that go before a waiter.
    pub(crate) fn rank_in_flow(&self, turn: Turn) -> Option<usize> {
        self.band(turn.priority)?.rank_in_flow(turn)
    }

    /// Returns whether it is the turn of this waiter.
    pub(crate) fn is_head(&self, turn: Turn) -> bool {
        self.head() == Some(turn)
    }

    /// Returns the priority with which a waiter asks a backend: for the head, the highest of those that wait behind it.
    pub(crate) fn priority_at_turn(&self, turn: Turn) -> Priority {
        let highest = self.bands.first().filter(|_| self.is_head(turn));
        highest.map_or(turn.priority, |band| band.priority)
    }

    /// Returns whether a waiter is in the queue.
    pub(crate) fn contains(&self, turn: Turn) -> bool {
        self.waker(turn).is_some()
    }

    /// Returns whether the head goes before a waiter that is not in this queue, or only keeps a place in it.
    ///
    /// A new request goes behind all that wait, unless it takes the place of the head. A request that waits
    /// at another key goes behind a head that is before it in the order of turns in other queues, and behind
    /// an older one whose place it wouldn't take.
    pub(crate) fn is_behind(&self, turn: Turn, now: Timestamp) -> bool {
        let Some(head) = self.head.filter(|head| head.turn != turn) else { return false };
        // A starved priority has its turn before the one that would take the place of the head.
        let takes_place = self.is_displaced(head, turn.priority, now)
            && !self.bands.iter().any(|b| b.priority < turn.priority && self.is_starved(b, now));
        if turn.arrival == u64::MAX {
            return !takes_place;
        }
        head.turn.is_before(turn) || !takes_place && head.turn.arrival < turn.arrival
    }

    /// Returns the first request, if only gates go before it.
    pub(crate) fn first_request(&self) -> Option<Turn> {
        let head = self.head()?;
        if !head.is_gate() {
            return Some(head);
        }
        self.bands.iter().find_map(|band| band.first_request())
    }

    /// Returns the wakers of all requests.
    pub(crate) fn request_wakers(&self) -> impl Iterator<Item = Waker> {
        let requests = self.in_order().filter(|(kind, _)| *kind == Kind::Request);
        requests.map(|(_, waker)| waker.clone())
    }

    /// Returns the wakers of all waiters and listeners, and of the requests that ask.
    pub(crate) fn all_wakers(&self) -> impl Iterator<Item = Waker> {
        let listeners = self.listeners.iter().map(|(_, waker)| waker.clone());
        let waiters = self.in_order().map(|(_, waker)| waker.clone());
        waiters.chain(self.asking.wakers()).chain(listeners)
    }

    /// Chooses the head.
    fn choose(&mut self, now: Timestamp) {
        let is_starved = |band: &&Band| self.is_starved(band, now);
        let mut bands = self.bands.iter().map(|band| &**band);
        let highest = bands.next();
        let starved = bands.filter(is_starved).min_by_key(|band| band.served_at);
        let chosen = starved.or(highest);
        self.heads += 1;
        let number = self.heads;
        self.head = chosen.and_then(|band| {
            Some(Head { turn: band.first()?, since: now, is_starved: starved.is_some(), number })
        });
    }

    /// Returns whether a priority has had no turn for `max_starvation`.
    fn is_starved(&self, band: &Band, now: Timestamp) -> bool {
        band.served_at + self.max_starvation <= now
    }

    /// Returns whether a waiter of this priority takes the place of the head.
    fn is_displaced(&self, head: Head, by: Priority, now: Timestamp) -> bool {
        by > head.turn.priority && !head.is_starved && now < head.since + self.max_starvation
    }

    fn waker(&self, turn: Turn) -> Option<&Waker> {
        self.contact(turn).map(|contact| &contact.waker)
    }

    fn contact(&self, turn: Turn) -> Option<&Contact> {
        self.band(turn.priority)?.contact(turn)
    }

    fn band(&self, priority: Priority) -> Option<&Band> {
        self.bands.iter().map(|band| &**band).find(|band| band.priority == priority)
    }

    fn band_mut(&mut self, priority: Priority) -> Option<&mut Band> {
        self.bands.iter_mut().map(|band| &mut **band).find(|band| band.priority == priority)
    }

    /// Returns all wakers: about in the order of the turns, without the head first.
    fn in_order(&self) -> impl Iterator<Item = (Kind, &Waker)> {
        self.bands.iter().flat_map(|band| band.wakers())
    }
}

#[cfg(test)]
mod tests;
