use std::collections::VecDeque;
use std::task::Waker;

use smallvec::SmallVec;

use super::ledger::Ledger;
use super::reduced::Reduced;
use super::trace::Trace;
use crate::quota::Cost;

/// Who waits for a key, in order of arrival; and until when nobody is let in.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Requests, by the number they drew on arrival.
    pub(super) queue: Row,
    /// Services that would like to know when a request would be let in; they take nothing.
    pub(super) gates: Row,
    /// Requests in the queue of another of their keys, that ask a backend for this one too.
    pub(super) asking: Row,
    /// What the first gate waits for, once it has looked.
    pub(super) wanted: Option<Cost>,
    pub(super) cooling_until: u64,
    pub(super) reduced: Option<Box<Reduced>>,
    pub(super) trace: Option<Box<Trace>>,
    /// What a store is to hear of, where there is one.
    pub(super) ledger: Option<Box<Ledger>>,
    /// How often something has changed: a backend that was asked before may be out of date.
    pub(super) changes: u64,
    /// Requests up to this number wait for a quota that was removed.
    pub(super) ousted: u64,
    /// Nobody knows the key, and such keys are refused.
    pub(super) barred: bool,
    /// The key counts elsewhere by now: who is here has to go there.
    pub(super) moved: bool,
}

impl Line {
    /// Whom to wake when something has changed: the first request, or else the first gate.
    pub(super) fn next_up(&self) -> Option<Waker> {
        self.queue.front().or_else(|| self.gates.front()).cloned()
    }

    pub(super) fn everyone(&self) -> impl Iterator<Item = Waker> {
        self.queue.everyone().chain(self.gates.everyone()).chain(self.asking.everyone())
    }

    /// Whether nobody is here, and the provider's last refusal has passed and is recovered from.
    pub(super) fn is_idle(&self, now: u64) -> bool {
        let nobody = [&self.queue, &self.gates, &self.asking].into_iter().all(Row::is_empty);
        let whole = self.reduced.as_ref().is_none_or(|reduced| reduced.is_over(now));
        nobody && self.cooling_until <= now && whole
    }

    /// Whether the key is treated the same without a line.
    pub(super) fn is_needless(&self, now: u64) -> bool {
        self.is_open(now) && !self.is_kept()
    }

    /// Whether there is nothing in it but a trace and a ledger: a newcomer comes in as if there were
    /// no line.
    #[inline]
    pub(super) fn is_mere_trace(&self, now: u64) -> bool {
        self.is_kept() && self.is_open(now)
    }

    #[inline]
    fn is_kept(&self) -> bool {
        self.trace.is_some() || self.ledger.is_some()
    }

    fn is_open(&self, now: u64) -> bool {
        self.reduced.is_none() && !self.barred && !self.moved && self.is_idle(now)
    }
}

/// Places in order of arrival. Only the first is woken.
#[derive(Debug, Default)]
pub(super) struct Row(VecDeque<(u64, Waker)>);

impl Row {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the place that is due to a number: behind all who came before.
    pub(super) fn enter(&mut self, number: u64, waker: &Waker) {
        if let Err(at) = self.rank(number) {
            self.0.insert(at, (number, waker.clone()));
        }
    }

    pub(super) fn is_first(&self, number: u64) -> bool {
        self.0.front().is_some_and(|(first, _)| *first == number)
    }

    /// Whether anybody came before.
    pub(super) fn is_before(&self, number: u64) -> bool {
        self.0.front().is_some_and(|(first, _)| *first < number)
    }

    pub(super) fn everyone(&self) -> impl Iterator<Item = Waker> {
        self.0.iter().map(|(_, waker)| waker.clone())
    }

    pub(super) fn front(&self) -> Option<&Waker> {
        self.0.front().map(|(_, waker)| waker)
    }

    /// The place stays; who is woken for it changes. The old waker is for the caller to drop when
    /// it has let go of the lock: it may own a task, and with it a permit.
    #[must_use = "dropped without the lock"]
    pub(super) fn set_waker(&mut self, number: u64, waker: &Waker) -> Option<Waker> {
        let (_, old) = self.rank(number).ok().map(|at| &mut self.0[at])?;
        (!old.will_wake(waker)).then(|| std::mem::replace(old, waker.clone()))
    }

    /// Gives a place up; says whether it was the first. The waker is for the caller to drop, as
    /// in [`set_waker`](Self::set_waker).
    pub(super) fn remove(&mut self, number: u64) -> (bool, Option<Waker>) {
        let Ok(at) = self.rank(number) else { return (false, None) };
        (at == 0, self.0.remove(at).map(|(_, waker)| waker))
    }

    /// Takes the first place away from whoever has it.
    pub(super) fn remove_first(&mut self) -> Option<Waker> {
        self.0.pop_front().map(|(_, waker)| waker)
    }

    /// How many are before this number; as an error if it has no place.
    pub(super) fn rank(&self, number: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |(n, _)| *n)
    }
}

/// Wakers to be rung, or dropped, once the locks are open again: either may run anything.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    due: SmallVec<[Waker; 2]>,
    spent: SmallVec<[Waker; 2]>,
}

impl Wakers {
    pub(super) fn wake(&mut self, due: impl IntoIterator<Item = Waker>) {
        self.due.extend(due);
    }

    pub(super) fn drop_later(&mut self, spent: Option<Waker>) {
        self.spent.extend(spent);
    }

    /// Without a lock.
    pub(super) fn ring(self) {
        self.due.into_iter().for_each(Waker::wake);
    }
}
