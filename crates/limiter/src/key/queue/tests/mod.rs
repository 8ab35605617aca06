//! The queue of one key: its order against an independent reference, and the bounds of the order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use paceline_testing::full::full_or;
use proptest::prelude::*;

mod order;
mod reference;
mod wakers;

use self::reference::{Reference, weight};
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

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix_secs(seconds)
}

fn terms(turn: Turn) -> Option<GateTerms> {
    turn.is_gate().then(|| GateTerms { cost: crate::quota::Cost::new(), leaves_claim: false })
}

/// A policy with a starvation limit of 10 s.
fn service(unit: u64, weight: u32) -> Service {
    Service { unit, amounts: NO_AMOUNTS, weight, max_starvation: Duration::from_secs(10) }
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Enter(Turn, u64, usize),
    SetWaker(Turn, usize),
    Remove(Turn),
    /// Admits the head, or another waiter: the call of a gate that has opened, or one that a backend admits.
    Admit(Option<Turn>),
    /// Admits a request that isn't in the queue.
    Charge(Turn, u64),
    Pass(u64),
    Listen(u64, usize),
    SetListenerWaker(u64, usize),
    StopListening(u64),
}

/// Returns the turn of a number, which determines its kind, priority and flow.
fn turn(arrival: u64) -> Turn {
    let turn = if arrival % 3 == 2 { Turn::gate(arrival) } else { Turn::request(arrival) };
    turn.within(Priority::new((arrival / 2 % 3) as i8), arrival / 6 % 3)
}

/// Returns all turns, with those of calls that have the number of a gate.
fn turns() -> impl Iterator<Item = Turn> {
    let turns = || (0..ARRIVALS).map(turn);
    turns().chain(turns().map(|turn| Turn { kind: Kind::Request, ..turn }).skip(2).step_by(3))
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let waker = || 0..WAKERS;
    let turn = || proptest::sample::select(turns().collect::<Vec<_>>());
    let action = prop_oneof![
        6 => (turn(), 0..5_u64, waker()).prop_map(|(turn, unit, at)| Action::Enter(turn, unit, at)),
        1 => (turn(), waker()).prop_map(|(turn, waker)| Action::SetWaker(turn, waker)),
        2 => turn().prop_map(Action::Remove),
        3 => Just(Action::Admit(None)),
        3 => turn().prop_map(|turn| Action::Admit(Some(turn))),
        1 => (turn(), 0..5_u64).prop_map(|(turn, unit)| Action::Charge(turn, unit)),
        2 => (0..7_u64).prop_map(Action::Pass),
        1 => (0..ARRIVALS, waker()).prop_map(|(at, waker)| Action::Listen(at, waker)),
        1 => (0..ARRIVALS, waker()).prop_map(|(at, waker)| Action::SetListenerWaker(at, waker)),
        1 => (0..ARRIVALS).prop_map(Action::StopListening),
    ];
    proptest::collection::vec(action, 1..40)
}

fn act(queue: &mut WaitQueue, reference: &mut Reference, wakers: &[Waker], action: Action) {
    let pick = |at: usize| (&wakers[at], id(&wakers[at]));
    let now = at(reference.now);
    match action {
        Action::Enter(turn, unit, at) => {
            queue.enter(turn, service(unit, weight(turn)), terms(turn), pick(at).0, now);
            reference.enter(turn, pick(at).1);
        }
        Action::SetWaker(turn, at) => {
            let old = queue.set_waker(turn, pick(at).0);
            let own = reference.waiters.iter_mut().find(|waiter| waiter.0 == turn);
            let replaced = own.map(|own| std::mem::replace(&mut own.1, pick(at).1));
            assert_eq!(old.as_ref().map(id), replaced.filter(|old| *old != pick(at).1));
        }
        Action::Remove(turn) => {
            let left = queue.remove(turn, now).map(|left| (left.was_next, id(&left.waker)));
            assert_eq!(left, reference.remove(turn));
        }
        Action::Admit(turn) => {
            let Some(turn) = turn.or_else(|| queue.head()) else { return };
            let left = queue.grant(turn, service(3, weight(turn)), now);
            let left = left.map(|left| (left.was_next, id(&left.waker)));
            assert_eq!(left, reference.grant(turn, 3, weight(turn)));
        }
        Action::Charge(turn, unit) => {
            queue.charge(turn, service(unit, weight(turn)), now);
            reference.charge(turn, unit, weight(turn));
        }
        Action::Pass(seconds) => reference.now += seconds,
        Action::Listen(arrival, at) => {
            queue.listen(arrival, pick(at).0);
            if reference.listeners.iter().all(|listener| listener.0 != arrival) {
                reference.listeners.push((arrival, pick(at).1));
            }
        }
        Action::SetListenerWaker(arrival, at) => {
            let old = queue.set_listener_waker(arrival, pick(at).0);
            let own = reference.listeners.iter_mut().find(|listener| listener.0 == arrival);
            let replaced = own.map(|own| std::mem::replace(&mut own.1, pick(at).1));
            assert_eq!(old.as_ref().map(id), replaced.filter(|old| *old != pick(at).1));
        }
        Action::StopListening(arrival) => {
            let waker = queue.stop_listening(arrival);
            let own = reference.listeners.iter().position(|listener| listener.0 == arrival);
            let removed = own.map(|own| reference.listeners.remove(own).1);
            assert_eq!(waker.as_ref().map(id), removed);
        }
    }
}

/// A saturated key that serves one unit a second: requests of each flow arrive as fast as they are
/// served.
struct Saturated {
    queue: WaitQueue,
    now: u64,
    arrivals: u64,
    /// The flows: priority, flow, unit of its requests, weight.
    flows: Vec<(Priority, u64, u64, u32)>,
}

impl Saturated {
    fn new(flows: Vec<(Priority, u64, u64, u32)>) -> Self {
        let mut saturated = Self { queue: WaitQueue::default(), now: 0, arrivals: 0, flows };
        (0..saturated.flows.len()).for_each(|flow| saturated.arrive(flow));
        saturated
    }

    fn arrive(&mut self, flow: usize) {
        let (priority, id, unit, weight) = self.flows[flow];
        let turn = Turn::request(self.arrivals).within(priority, id);
        self.arrivals += 1;
        self.queue.enter(turn, service(unit, weight), None, &waker(), at(self.now));
    }

    /// Admits the head once the key has refilled, and returns its flow. Its successor has arrived.
    fn admit(&mut self) -> usize {
        let head = self.queue.head().expect("all flows have waiters");
        let is_own =
            |flow: &(Priority, u64, u64, u32)| (flow.0, flow.1) == (head.priority, head.flow);
        let flow = self.flows.iter().position(is_own).unwrap();
        let (_, _, unit, weight) = self.flows[flow];
        self.arrive(flow);
        self.now += unit;
        drop(self.queue.grant(head, service(unit, weight), at(self.now)));
        flow
    }
}

fn flows(
    of: impl Strategy<Value = Priority>,
) -> impl Strategy<Value = Vec<(Priority, u64, u64, u32)>> {
    let flow = (of, 1..6_u64, 1..5_u32);
    proptest::collection::vec(flow, 2..5).prop_map(|flows| {
        let numbered = (0..).zip(flows);
        numbered.map(|(id, (priority, unit, weight))| (priority, id, unit, weight)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(100_000, 2_000))
    })]

    #[test]
    fn queue_after_any_actions_equals_reference(actions in actions()) {
        let wakers: Vec<Waker> = (0..WAKERS).map(|_| waker()).collect();
        let (mut queue, mut reference) = (WaitQueue::default(), Reference::default());
        reference.compare(&mut queue);
        for action in actions {
            act(&mut queue, &mut reference, &wakers, action);
            reference.compare(&mut queue);
        }
        for turn in turns() {
            drop(queue.remove(turn, at(reference.now)));
        }
        (0..ARRIVALS).for_each(|arrival| drop(queue.stop_listening(arrival)));
        prop_assert!(queue.is_empty() && queue.head().is_none());
    }

    /// P5: with one priority and one flow, requests and gates go in order of arrival.
    #[test]
    fn one_flow_is_served_in_order_of_arrival(
        arrivals in proptest::collection::vec((0..50_u64, any::<bool>()), 1..30),
    ) {
        let mut queue = WaitQueue::default();
        let mut expected = std::collections::BTreeSet::new();
        for (arrival, is_gate) in arrivals {
            if expected.insert(arrival) {
                let turn = if is_gate { Turn::gate(arrival) } else { Turn::request(arrival) };
                queue.enter(turn, Service::default(), terms(turn), &waker(), at(0));
            }
        }
        for arrival in expected {
            let head = queue.head().unwrap();
            prop_assert_eq!(head.arrival(), arrival);
            drop(queue.grant(head, Service::default(), at(0)));
        }
        prop_assert!(queue.is_empty());
    }

    #[test]
    fn flows_with_waiters_differ_by_largest_requests(
        flows in flows(Just(Priority::NORMAL)),
        grants in 1..200_usize,
    ) {
        let mut saturated = Saturated::new(flows.clone());
        let mut served = vec![0_u64; flows.len()];
        for _ in 0..grants {
            let flow = saturated.admit();
            served[flow] += flows[flow].2;
            for (a, b) in (0..flows.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let part = |at: usize| (served[at] as f64 / f64::from(flows[at].3), flows[at].2 as f64 / f64::from(flows[at].3));
                let ((of_a, unit_a), (of_b, unit_b)) = (part(a), part(b));
                prop_assert!((of_a - of_b).abs() <= unit_a + unit_b + 1e-6);
            }
        }
    }

    #[test]
    fn every_priority_has_a_turn_within_max_starvation(
        flows in flows((0..3_i8).prop_map(Priority::new)),
        grants in 1..200_usize,
    ) {
        let mut saturated = Saturated::new(flows.clone());
        let mut served: HashMap<Priority, u64> = flows.iter().map(|flow| (flow.0, 0)).collect();
        let largest = flows.iter().map(|flow| flow.2).max().unwrap();
        let bands = served.len() as u64;
        for _ in 0..grants {
            let flow = saturated.admit();
            served.insert(flows[flow].0, saturated.now);
            // The request that is being served when it becomes starved, those of the other starved
            // priorities, and its own.
            let most = 10 + (bands + 1) * largest;
            prop_assert!(served.values().all(|since| saturated.now - since <= most), "{served:?}");
        }
    }
}

const ARRIVALS: u64 = 18;
const WAKERS: usize = 6;

#[test]
fn waiters_are_not_absent_right_after_a_standstill() {
    let (mut queue, now) = (WaitQueue::default(), at(1_000));
    let [first, second] = [Turn::request(1), Turn::request(2)];
    for turn in [first, second] {
        queue.enter(turn, Service::default(), None, &waker(), now);
    }
    for turn in [first, second] {
        queue.on_polled(turn, now, now);
    }
    // The whole program stood still, and the second task runs first.
    let later = now + Duration::from_secs(10);
    queue.on_polled(second, now, later);
    assert!(!queue.has_absent());
    queue.on_polled(second, now, later + Duration::from_millis(250));
    assert!(queue.has_absent());
    queue.remove_absent(later + Duration::from_millis(250));
    assert_eq!(queue.head(), Some(second));
}

#[test]
fn overdue_requests_do_not_count_before_a_new_one() {
    let (mut queue, now) = (WaitQueue::default(), at(1_000));
    let amounts = [1, 70, 0, 0];
    for arrival in [1, 2] {
        let service = Service { amounts, ..Service::default() };
        _ = queue.enter(Turn::request(arrival), service, None, &waker(), now);
        queue.on_polled(Turn::request(arrival), now, now);
    }
    let later = now + Duration::from_secs(2);
    queue.on_polled(Turn::request(2), now, later);
    let new = Turn::request(3);
    assert_eq!(queue.amounts_before(new), Some([2, 140, 0, 0]));
    assert_eq!(queue.amounts_present(new, later), [1, 70, 0, 0]);
}

#[test]
fn waiters_that_cannot_be_admitted_are_quiet_until_one_can() {
    let (mut queue, now) = (WaitQueue::default(), at(1_000));
    let [first, second, third] = [1, 2, 3].map(Turn::request);
    for turn in [first, second] {
        queue.enter(turn, Service::default(), None, &waker(), now);
    }
    let midnight = now + Duration::from_secs(3_600);
    for turn in [first, second] {
        assert!(queue.on_polled(turn, midnight, now) > Some(midnight));
    }
    assert!(!queue.is_disturbed(now));
    // A smaller one fits before, and the first may have been forgotten.
    let later = now + Duration::from_secs(60);
    queue.enter(third, Service::default(), None, &waker(), later);
    let polls_by = queue.on_polled(third, later, later).unwrap();
    assert!(polls_by < later + Duration::from_secs(1));
    assert!(queue.is_disturbed(later));
    assert_eq!(queue.next(later).len(), 3);
    assert!(!queue.is_disturbed(later));
    for turn in [second, third] {
        queue.on_polled(turn, midnight, polls_by);
    }
    queue.on_polled(third, polls_by, polls_by + Duration::from_millis(250));
    assert!(queue.has_absent());
    queue.remove_absent(polls_by + Duration::from_millis(250));
    assert_eq!(queue.head(), Some(second));
}

#[test]
fn head_asks_with_the_priority_of_those_behind_it() {
    let (mut queue, now) = (WaitQueue::default(), at(1_000));
    let priorities = [Priority::BATCH, Priority::BATCH, Priority::INTERACTIVE];
    let [head, batch, interactive] =
        [0, 1, 2].map(|at| Turn::request(at as u64).within(priorities[at], 0));
    queue.enter(head, Service::default(), None, &waker(), now);
    assert_eq!(queue.priority_at_turn(head), Priority::BATCH);
    // The head is older than the time of starvation, and keeps its turn.
    let later = now + Duration::from_secs(31);
    for turn in [batch, interactive] {
        queue.enter(turn, Service::default(), None, &waker(), later);
    }
    assert!(queue.is_head(head));
    let asked = [head, batch, interactive].map(|turn| queue.priority_at_turn(turn));
    assert_eq!(asked, [Priority::INTERACTIVE, Priority::BATCH, Priority::INTERACTIVE]);
}
