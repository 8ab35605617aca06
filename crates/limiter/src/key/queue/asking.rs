use std::task::Waker;

use super::contact::Contact;
use super::head::Head;
use super::turn::Turn;

/// The requests of one queue that await the answer of a backend, in the order in which they asked.
///
/// A request leaves the queue when it asks, and returns to it if it is refused and waits. So several
/// requests ask at the same time, in the order of their turns. A grant is used in that order too: after
/// the answers to all requests that asked before, and only if none of them waits again.
///
/// After a refusal one request asks at a time, so that waiting requests don't all ask for the same
/// quota. Each grant at the first attempt then lets one more ask.
#[derive(Debug)]
pub(crate) struct Asking {
    requests: Vec<Asker>,
    /// The number of requests that may ask in their turn at the same time.
    most: usize,
    is_short: bool,
}

#[derive(Debug)]
struct Asker {
    turn: Turn,
    contact: Contact,
    /// The turn that it had in the queue; `None` for a request that asks out of turn, since it doesn't
    /// wait.
    head: Option<Head>,
    /// The backend was called.
    is_sent: bool,
    /// It is granted, and requests that asked before have no answer yet.
    is_early: bool,
    /// A request that asked before was refused, and waits again.
    is_passing: bool,
    is_first_attempt: bool,
    /// Gives back what the request holds at the backend.
    give_back: Option<Waker>,
}

/// How a request asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// The request is the head of the queue, and returns to it if it is refused.
    pub(crate) is_in_turn: bool,
    /// The request was never refused.
    pub(crate) is_first: bool,
}

/// A request that no longer asks.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Its waker, to be dropped without a lock.
    pub(crate) waker: Waker,
    /// The wakers of the granted requests that need no longer wait for it.
    pub(crate) due: Vec<Waker>,
}

/// Whether a granted request may use its grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is next.
    Next,
    /// Requests that asked before have no answer yet.
    Early,
    /// It would pass a request that was refused and waits.
    Passing,
    /// It was passed because it wasn't polled, and its grant was given back.
    Absent,
}

impl Asking {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns whether a request asks.
    pub(crate) fn contains(&self, turn: Turn) -> bool {
        self.position(turn).is_some()
    }

    /// Returns the number of requests that ask.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns whether requests in the queue wait for quota. If not, they wait for answers at most.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Returns whether no request asks in its turn.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_turn().next().is_none()
    }

    /// Returns whether one more request may ask in its turn. It may not before the backend was called for
    /// the one before, since the backend decides in the order of the calls.
    pub(crate) fn admits(&self) -> bool {
        self.in_turn().count() < self.most && self.in_turn().all(|asker| asker.is_sent)
    }

    pub(super) fn begin(
        &mut self,
        turn: Turn,
        head: Option<Head>,
        is_first_attempt: bool,
        contact: Contact,
    ) {
        let (is_sent, is_early, is_passing) = (false, false, false);
        let give_back = None;
        self.requests.push(Asker {
            turn,
            contact,
            head,
            is_sent,
            is_early,
            is_passing,
            is_first_attempt,
            give_back,
        });
    }

    /// Notes that the backend was called. Returns whether the request still asks.
    pub(super) fn mark_sent(&mut self, turn: Turn, give_back: Waker) -> bool {
        let asker = self.requests.iter_mut().find(|asker| asker.turn == turn);
        let asker = asker.map(|asker| (asker.is_sent, asker.give_back) = (true, Some(give_back)));
        asker.is_some()
    }

    /// Returns whether a granted request may use its grant. One that may not yet is woken when it may.
    pub(crate) fn standing(&mut self, turn: Turn) -> Standing {
        let Some(at) = self.position(turn) else { return Standing::Absent };
        let asker = &self.requests[at];
        if asker.head.is_none() {
            return Standing::Next;
        }
        if asker.is_passing {
            return Standing::Passing;
        }
        if self.requests[..at].iter().any(|before| before.precedes(turn)) {
            self.requests[at].is_early = true;
            return Standing::Early;
        }
        Standing::Next
    }

    /// Ends a request that was granted.
    pub(super) fn grant(&mut self, turn: Turn) -> Option<Answered> {
        let (asker, due) = self.remove(turn)?;
        if asker.head.is_some() && asker.is_first_attempt {
            (self.most, self.is_short) = (self.most.saturating_add(1), false);
        }
        Some(Answered { waker: asker.contact.waker, due })
    }

    /// Ends a request that gives up.
    pub(super) fn cancel(&mut self, turn: Turn) -> Option<Answered> {
        self.remove(turn).map(|(asker, due)| Answered { waker: asker.contact.waker, due })
    }

    /// Ends a request that is absent. Calling the returned wakers gives back what it holds, and lets those go on
    /// that wait for it.
    pub(super) fn abandon(&mut self, turn: Turn) -> Option<Answered> {
        let (asker, mut due) = self.remove(turn)?;
        due.extend(asker.give_back);
        Some(Answered { waker: asker.contact.waker, due })
    }

    /// Ends a request that was refused and returns to the queue. Requests that asked later must not pass it.
    /// Returns the turn that it had there.
    pub(super) fn refuse(&mut self, turn: Turn) -> Option<(Option<Head>, Answered)> {
        let at = self.position(turn)?;
        if self.requests[at].head.is_some() {
            (self.most, self.is_short) = (1, true);
            let refused = self.requests[at].turn;
            let later = self.requests[at + 1..].iter_mut();
            for asker in later.filter(|asker| asker.head.is_some()) {
                asker.is_passing |= refused.priority >= asker.turn.priority;
            }
        }
        let (asker, due) = self.remove(turn)?;
        Some((asker.head, Answered { waker: asker.contact.waker, due }))
    }

    /// Replaces the waker of a request. Returns the old one.
    pub(crate) fn set_waker(&mut self, turn: Turn, waker: &Waker) -> Option<Waker> {
        let asker = self.requests.iter_mut().find(|asker| asker.turn == turn)?;
        asker.contact.set_waker(waker)
    }

    /// Returns the contact of a request that asks.
    pub(super) fn contact_mut(&mut self, turn: Turn) -> Option<&mut Contact> {
        let asker = self.requests.iter_mut().find(|asker| asker.turn == turn);
        asker.map(|asker| &mut asker.contact)
    }

    /// Returns each request that asks with its contact, and whether it asks in its turn.
    pub(super) fn contacts(&self) -> impl Iterator<Item = (Turn, &Contact, bool)> {
        self.requests.iter().map(|asker| (asker.turn, &asker.contact, asker.head.is_some()))
    }

    /// Returns the contacts of all requests that ask.
    pub(super) fn contacts_mut(&mut self) -> impl Iterator<Item = &mut Contact> {
        self.requests.iter_mut().map(|asker| &mut asker.contact)
    }

    /// Returns the wakers of all requests that ask.
    pub(super) fn wakers(&self) -> impl Iterator<Item = Waker> {
        self.requests.iter().map(|asker| asker.contact.waker.clone())
    }

    fn in_turn(&self) -> impl Iterator<Item = &Asker> {
        self.requests.iter().filter(|asker| asker.head.is_some())
    }

    fn position(&self, turn: Turn) -> Option<usize> {
        self.requests.iter().position(|asker| asker.turn == turn)
    }

    /// Removes a request. Returns it, and the wakers of the granted ones that need no longer wait.
    fn remove(&mut self, turn: Turn) -> Option<(Asker, Vec<Waker>)> {
        let at = self.position(turn)?;
        let removed = self.requests.remove(at);
        let (mut due, mut highest) = (Vec::new(), None);
        for (index, asker) in self.requests.iter_mut().enumerate() {
            if asker.head.is_none() {
                continue;
            }
            let is_next = highest.is_none_or(|highest| asker.turn.priority > highest);
            if index >= at && asker.is_early && (is_next || asker.is_passing) {
                asker.is_early = false;
                due.push(asker.contact.waker.clone());
            }
            highest = highest.max(Some(asker.turn.priority));
        }
        Some((removed, due))
    }
}

impl Asker {
    /// Returns whether a grant of a later request waits for the answer to this one.
    fn precedes(&self, later: Turn) -> bool {
        self.head.is_some() && self.turn.priority >= later.priority
    }
}

impl Default for Asking {
    fn default() -> Self {
        Self { requests: Vec::new(), most: usize::MAX, is_short: false }
    }
}
