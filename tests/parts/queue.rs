//! The queue of one key, without a limiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use proptest::prelude::*;
use tollgate_testing::full::full_or;

use super::*;

/// A waker that counts its calls.
#[derive(Debug, Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counter {
    fn new() -> (Arc<Self>, Waker) {
        let counter = Arc::new(Self::default());
        (Arc::clone(&counter), Waker::from(counter))
    }

    fn calls(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn waker() -> Waker {
    Counter::new().1
}

/// Returns the identity of a waker.
fn id(waker: &Waker) -> usize {
    waker.data().addr()
}

fn ids(wakers: impl IntoIterator<Item = Waker>) -> Vec<usize> {
    wakers.into_iter().map(|waker| id(&waker)).collect()
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Enter(Turn, usize),
    SetWaker(Turn, usize),
    Remove(Turn),
    Listen(u64, usize),
    SetListenerWaker(u64, usize),
    StopListening(u64),
}

/// A reference implementation: waiters and listeners with the identity of their wakers, sorted
/// after each entry.
#[derive(Debug, Default)]
struct Reference {
    waiters: Vec<(Turn, usize)>,
    listeners: Vec<(u64, usize)>,
}

fn key(turn: Turn) -> (bool, u64) {
    (turn.is_gate(), turn.arrival())
}

impl Reference {
    fn enter(&mut self, turn: Turn, waker: usize) {
        if self.waiters.iter().all(|waiter| waiter.0 != turn) {
            self.waiters.push((turn, waker));
            self.waiters.sort_by_key(|waiter| key(waiter.0));
        }
    }

    /// Returns the waker that was replaced.
    fn set_waker(&mut self, turn: Turn, waker: usize) -> Option<usize> {
        let own = self.waiters.iter_mut().find(|waiter| waiter.0 == turn)?;
        let old = std::mem::replace(&mut own.1, waker);
        (old != waker).then_some(old)
    }

    fn set_listener_waker(&mut self, arrival: u64, waker: usize) -> Option<usize> {
        let own = self.listeners.iter_mut().find(|listener| listener.0 == arrival)?;
        let old = std::mem::replace(&mut own.1, waker);
        (old != waker).then_some(old)
    }

    fn remove(&mut self, turn: Turn) -> Option<(bool, usize)> {
        let was_first = self.rank(turn)? == 0;
        let at = self.waiters.iter().position(|waiter| waiter.0 == turn)?;
        Some((was_first, self.waiters.remove(at).1))
    }

    fn stop_listening(&mut self, arrival: u64) -> Option<usize> {
        let at = self.listeners.iter().position(|listener| listener.0 == arrival)?;
        Some(self.listeners.remove(at).1)
    }

    fn of_kind(&self, is_gate: bool) -> Vec<(Turn, usize)> {
        self.waiters.iter().copied().filter(|waiter| waiter.0.is_gate() == is_gate).collect()
    }

    fn rank(&self, turn: Turn) -> Option<usize> {
        self.of_kind(turn.is_gate()).iter().position(|waiter| waiter.0 == turn)
    }

    fn compare(&self, queue: &WaitQueue) {
        let requests = self.of_kind(false);
        let wakers = |waiters: &[(Turn, usize)]| waiters.iter().map(|w| w.1).collect::<Vec<_>>();
        let mut listeners: Vec<_> = self.listeners.iter().map(|listener| listener.1).collect();
        listeners.sort_unstable();
        let next = self.waiters.first().map(|waiter| waiter.1);

        assert_eq!(queue.is_empty(), self.waiters.is_empty() && self.listeners.is_empty());
        assert_eq!(queue.requests(), requests.len());
        assert_eq!(queue.first_gate(), self.of_kind(true).first().map(|waiter| waiter.0));
        assert_eq!(queue.next().as_ref().map(id), next);
        assert_eq!(ids(queue.request_wakers()), wakers(&requests));
        let split = |wakers: Vec<usize>, at: usize| {
            let (waiters, listeners) = wakers.split_at(at);
            let mut listeners = listeners.to_vec();
            listeners.sort_unstable();
            (waiters.to_vec(), listeners)
        };
        let all = (wakers(&self.waiters), listeners.clone());
        assert_eq!(split(ids(queue.all_wakers()), self.waiters.len()), all);
        let changed = (next.into_iter().collect(), listeners);
        assert_eq!(split(ids(queue.change_wakers()), usize::from(next.is_some())), changed);

        for turn in turns() {
            let rank = self.rank(turn);
            assert_eq!(queue.rank(turn), rank, "{turn:?}");
            assert_eq!(queue.is_first(turn), rank == Some(0), "{turn:?}");
            let before = requests.iter().any(|request| key(request.0) < key(turn));
            assert_eq!(queue.has_request_before(turn), before, "{turn:?}");
        }
    }
}

fn turns() -> impl Iterator<Item = Turn> {
    (0..ARRIVALS).flat_map(|arrival| [Turn::request(arrival), Turn::gate(arrival)])
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let turn = || {
        let turn = (0..ARRIVALS, 0..3_u8);
        turn.prop_map(|(at, kind)| if kind == 0 { Turn::gate(at) } else { Turn::request(at) })
    };
    let waker = || 0..WAKERS;
    let action = prop_oneof![
        5 => (turn(), waker()).prop_map(|(turn, waker)| Action::Enter(turn, waker)),
        2 => (turn(), waker()).prop_map(|(turn, waker)| Action::SetWaker(turn, waker)),
        3 => turn().prop_map(Action::Remove),
        2 => (0..ARRIVALS, waker()).prop_map(|(at, waker)| Action::Listen(at, waker)),
        1 => (0..ARRIVALS, waker()).prop_map(|(at, waker)| Action::SetListenerWaker(at, waker)),
        1 => (0..ARRIVALS).prop_map(Action::StopListening),
    ];
    proptest::collection::vec(action, 1..40)
}

fn act(queue: &mut WaitQueue, reference: &mut Reference, wakers: &[Waker], action: Action) {
    let pick = |at: usize| (&wakers[at], id(&wakers[at]));
    match action {
        Action::Enter(turn, at) => {
            queue.enter(turn, pick(at).0);
            reference.enter(turn, pick(at).1);
        }
        Action::SetWaker(turn, at) => {
            let old = queue.set_waker(turn, pick(at).0);
            assert_eq!(old.as_ref().map(id), reference.set_waker(turn, pick(at).1));
        }
        Action::Remove(turn) => {
            let removed = queue.remove(turn);
            let removed = removed.map(|removed| (removed.was_first, id(&removed.waker)));
            assert_eq!(removed, reference.remove(turn));
        }
        Action::Listen(arrival, at) => {
            queue.listen(arrival, pick(at).0);
            if reference.listeners.iter().all(|listener| listener.0 != arrival) {
                reference.listeners.push((arrival, pick(at).1));
            }
        }
        Action::SetListenerWaker(arrival, at) => {
            let old = queue.set_listener_waker(arrival, pick(at).0);
            assert_eq!(old.as_ref().map(id), reference.set_listener_waker(arrival, pick(at).1));
        }
        Action::StopListening(arrival) => {
            let waker = queue.stop_listening(arrival);
            assert_eq!(waker.as_ref().map(id), reference.stop_listening(arrival));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(20_000, 1_000))
    })]

    #[test]
    fn queue_after_any_actions_equals_sorted_list(actions in actions()) {
        let wakers: Vec<Waker> = (0..WAKERS).map(|_| waker()).collect();
        let (mut queue, mut reference) = (WaitQueue::default(), Reference::default());
        reference.compare(&queue);
        for action in actions {
            act(&mut queue, &mut reference, &wakers, action);
            reference.compare(&queue);
        }
    }
}

#[test]
fn request_with_old_number_entering_last_goes_first() {
    let mut queue = WaitQueue::default();
    for arrival in [5, 9, 2, 7] {
        queue.enter(Turn::request(arrival), &waker());
    }
    let ranks = [2, 5, 7, 9].map(|arrival| queue.rank(Turn::request(arrival)));
    assert_eq!(ranks, [0, 1, 2, 3].map(Some));
}

#[test]
fn gate_with_old_number_goes_after_all_requests() {
    let mut queue = WaitQueue::default();
    let (gate, request) = (waker(), waker());
    queue.enter(Turn::gate(1), &gate);
    queue.enter(Turn::request(9), &request);
    assert_eq!(queue.next().as_ref().map(id), Some(id(&request)));
    assert!(queue.has_request_before(Turn::gate(1)));
    assert!(queue.is_first(Turn::gate(1)), "the first gate");
    assert!(queue.remove(Turn::request(9)).unwrap().was_first);
    assert_eq!(queue.next().as_ref().map(id), Some(id(&gate)));
    assert!(!queue.has_request_before(Turn::gate(1)));
}

#[test]
fn waker_set_again_is_not_replaced() {
    let (mut queue, waker) = (WaitQueue::default(), waker());
    queue.enter(Turn::request(1), &waker);
    queue.listen(1, &waker);
    assert!(queue.set_waker(Turn::request(1), &waker).is_none());
    assert!(queue.set_listener_waker(1, &waker).is_none());
}

#[test]
fn wakers_called_wake_due_tasks_and_drop_replaced() {
    let ((due, first), (other, second), (replaced, third)) =
        (Counter::new(), Counter::new(), Counter::new());
    let mut wakers = Wakers::default();
    wakers.wake([first.clone(), first]);
    wakers.wake(Some(second));
    wakers.drop_later(Some(third));
    assert_eq!((due.calls(), other.calls(), Arc::strong_count(&replaced)), (0, 0, 2));
    wakers.call();
    assert_eq!((due.calls(), other.calls(), replaced.calls()), (2, 1, 0));
    assert_eq!([due, other, replaced].map(|counter| Arc::strong_count(&counter)), [1; 3]);
}

const ARRIVALS: u64 = 10;
const WAKERS: usize = 6;
