use std::collections::VecDeque;
use std::task::Waker;

/// Who waits for a key, in order of arrival; and until when nobody is let in.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Requests, by the number they drew on arrival.
    pub(super) queue: Row,
    /// Services that would like to know when a request would be let in; they take nothing.
    pub(super) gates: Row,
    pub(super) cooling_until: u64,
    /// Whether something has changed since the first asked a backend: its answer may be out of date.
    pub(super) changed: bool,
    next: u64,
}

impl Line {
    /// A number above all that were drawn before.
    pub(super) fn draw(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whom to wake when something has changed: the first request, or else the first gate.
    pub(super) fn next_up(&self) -> Option<Waker> {
        self.queue.front().or_else(|| self.gates.front()).cloned()
    }

    pub(super) fn everyone(&self) -> impl Iterator<Item = Waker> {
        self.queue.0.iter().chain(&self.gates.0).map(|(_, waker)| waker.clone())
    }
}

/// Places in order of arrival. Only the first is ever woken.
#[derive(Debug, Default)]
pub(super) struct Row(VecDeque<(u64, Waker)>);

impl Row {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, number: u64, waker: &Waker) {
        self.0.push_back((number, waker.clone()));
    }

    pub(super) fn is_first(&self, number: u64) -> bool {
        self.0.front().is_some_and(|(first, _)| *first == number)
    }

    pub(super) fn front(&self) -> Option<&Waker> {
        self.0.front().map(|(_, waker)| waker)
    }

    /// The place stays; who is woken for it changes. The old waker is for the caller to drop when
    /// it has let go of the lock: it may own a task, and with it a permit.
    #[must_use = "dropped without the lock"]
    pub(super) fn set_waker(&mut self, number: u64, waker: &Waker) -> Option<Waker> {
        let (_, old) = self.find(number).ok().map(|at| &mut self.0[at])?;
        (!old.will_wake(waker)).then(|| std::mem::replace(old, waker.clone()))
    }

    /// Gives a place up; says whether it was the first. The waker is for the caller to drop, as
    /// in [`set_waker`](Self::set_waker).
    pub(super) fn remove(&mut self, number: u64) -> (bool, Option<Waker>) {
        let Ok(at) = self.find(number) else { return (false, None) };
        (at == 0, self.0.remove(at).map(|(_, waker)| waker))
    }

    fn find(&self, number: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |(n, _)| *n)
    }
}
