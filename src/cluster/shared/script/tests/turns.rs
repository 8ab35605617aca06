//! The order of waiting requests.

use std::iter;

use super::super::{Operation, Order, Outcome};
use super::fixture::{Fixture, S};
use crate::engine::Rule;
use crate::limiter::Precedence;
use crate::quota::{Algorithm, Dimension, Limit, Margin, SettleAt};

const BATCH: Order = Order { priority: -10, ..Order::ARRIVAL };
const INTERACTIVE: Order = Order { priority: 10, ..Order::ARRIVAL };
/// Half a second, in which tickets are renewed.
const TICK: u64 = S / 2;

/// Requests that wait for a bucket of 100 requests, of which one refills per second. Each has one of the amounts
/// and orders, and asks in every tick.
struct Queue {
    fixture: Fixture,
    waiting: Vec<(u8, u64, Order)>,
    /// What each request needs of other limits.
    other_amounts: Vec<u64>,
}

impl Queue {
    fn new() -> Self {
        let mut fixture = Fixture::requests();
        assert_eq!(fixture.reserve(1, 100), Outcome::Done);
        Self { fixture, waiting: Vec::new(), other_amounts: Vec::new() }
    }

    /// Lets requests with these ids wait.
    fn wait(&mut self, requests: &[(u8, u64, Order)]) {
        for &request in requests {
            assert!(!self.ask(request));
            self.waiting.push(request);
        }
    }

    fn ask(&mut self, (id, amount, order): (u8, u64, Order)) -> bool {
        let operation = Operation::Reserve { ttl: 10 * S, waits: true, order };
        let amounts: Vec<u64> =
            iter::once(amount).chain(self.other_amounts.iter().copied()).collect();
        self.fixture.call(operation, id, &amounts).outcome == Outcome::Done
    }

    /// Returns the id of the next request that is granted, within 100 s.
    fn next(&mut self) -> Option<u8> {
        for _ in 0..200 {
            for at in 0..self.waiting.len() {
                if self.ask(self.waiting[at]) {
                    return Some(self.waiting.remove(at).0);
                }
            }
            self.fixture.now += TICK;
        }
        None
    }

    fn granted(&mut self, count: usize) -> Vec<u8> {
        iter::from_fn(|| self.next()).take(count).collect()
    }

    /// Returns the flows of the next requests that are granted, of which each is followed by another one of its
    /// flow. Flow `n` has the ids from `n * 50`.
    fn flows_served(&mut self, count: usize) -> Vec<u8> {
        let mut served = Vec::new();
        while served.len() < count {
            let waiting = self.waiting.clone();
            let id = self.next().unwrap();
            served.push(id / 50);
            let (_, amount, order) = *waiting.iter().find(|request| request.0 == id).unwrap();
            self.wait(&[(id / 50 * 50 + (id % 50 + 1) % 50, amount, order)]);
        }
        served
    }
}

fn flow(number: u64, weight: u32) -> Order {
    Order { flow: number << 40, weight, ..Order::ARRIVAL }
}

#[test]
fn higher_priority_goes_first() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH), (3, 5, BATCH), (4, 10, Order::ARRIVAL), (5, 10, INTERACTIVE)]);
    assert_eq!(queue.granted(4), [5, 4, 2, 3]);
}

#[test]
fn request_that_does_not_wait_passes_lower_priorities() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let mut grants = |now: u64, order| {
        queue.fixture.now += now;
        assert!(!queue.ask((2, 50, BATCH)));
        let once = Operation::Reserve { ttl: 10 * S, waits: false, order };
        queue.fixture.call(once, 3, &[1]).outcome == Outcome::Done
    };
    assert_eq!([grants(TICK, BATCH), grants(0, INTERACTIVE)], [false, false]);
    assert_eq!([grants(TICK, BATCH), grants(0, INTERACTIVE)], [false, true]);
}

#[test]
fn first_request_keeps_its_turn_after_the_time_of_starvation() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    for _ in 0..60 {
        queue.fixture.now += TICK;
        assert!(!queue.ask((2, 50, BATCH)));
    }
    // It has been the first for 30 s.
    queue.wait(&[(3, 10, INTERACTIVE)]);
    assert_eq!(queue.granted(2), [2, 3]);
}

#[test]
fn lower_priority_has_one_turn_after_the_time_of_starvation() {
    let mut queue = Queue::new();
    let interactive = |id| (id, 10, INTERACTIVE);
    queue.wait(&[interactive(3), (2, 5, BATCH), (4, 5, BATCH)]);
    let mut granted = Vec::new();
    for id in 5..12 {
        // The next one waits before the one before is granted.
        queue.wait(&[interactive(id)]);
        granted.push(queue.next().unwrap());
    }
    // After 10, 20, 30 and 35 s, and so on.
    assert_eq!(granted, [3, 5, 6, 2, 7, 8, 9]);
}

#[test]
fn lower_priority_has_a_turn_although_higher_ones_pause() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let mut granted = Vec::new();
    for id in 3..8 {
        queue.wait(&[(id, 10, INTERACTIVE)]);
        granted.push(queue.next().unwrap());
        for _ in 0..4 {
            queue.fixture.now += TICK;
            let waiting = queue.waiting.clone();
            assert!(waiting.into_iter().all(|request| !queue.ask(request)));
        }
    }
    // The one at 32 s comes too late.
    assert_eq!(granted, [3, 4, 5, 2, 6]);
}

#[test]
fn lower_priority_has_a_turn_for_a_concurrency_slot() {
    let mut queue = Queue {
        fixture: Fixture::with(&[(Dimension::Concurrency, 1, Algorithm::TokenBucket)]),
        waiting: Vec::new(),
        other_amounts: Vec::new(),
    };
    assert!(queue.ask((1, 1, INTERACTIVE)));
    queue.wait(&[(2, 1, BATCH)]);
    let mut granted = vec![1];
    for id in 3..40 {
        queue.wait(&[(id, 1, INTERACTIVE)]);
        queue.fixture.now += TICK;
        assert!(queue.waiting.clone().into_iter().all(|request| !queue.ask(request)));
        queue.fixture.now += TICK;
        queue.fixture.settle(*granted.last().unwrap(), 1);
        granted.push(queue.next().unwrap());
        if granted.ends_with(&[2]) {
            break;
        }
    }
    assert!(granted.ends_with(&[2]), "{granted:?}");
    assert!((30..33).contains(&granted.len()), "{granted:?}");
}

#[test]
fn flows_are_served_by_their_weights() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 2))]);
    let served = queue.flows_served(15);
    assert_eq!(served.iter().filter(|flow| **flow == 1).count(), 5, "{served:?}");
    // In proportion to the amounts, and not only in the end.
    for part in served.chunks(3) {
        assert_eq!(part.iter().filter(|flow| **flow == 1).count(), 1, "{served:?}");
    }
}

#[test]
fn flow_of_large_requests_gets_the_same_amount_as_one_of_small_requests() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 2, flow(2, 1))]);
    let served = queue.flows_served(24);
    assert_eq!(served.iter().filter(|flow| **flow == 1).count(), 4, "{served:?}");
}

#[test]
fn total_has_no_rate_and_does_not_count_as_service() {
    let mut queue = Queue::new();
    let total = Limit::total(Dimension::Requests, 1_000_000).unwrap();
    let total = Rule::new(&total, Algorithm::FixedWindow, Margin::NONE, SettleAt::Send);
    queue.fixture.rules.push(total);
    queue.other_amounts.push(1);
    queue.wait(&[(50, 10, flow(1, 1)), (100, 2, flow(2, 1))]);
    let served = queue.flows_served(24);
    assert_eq!(served.iter().filter(|flow| **flow == 1).count(), 4, "{served:?}");
}

#[test]
fn service_of_a_flow_is_remembered_while_nobody_waits() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 2))]);
    assert_eq!(queue.granted(2), [50, 100]);
    queue.wait(&[(150, 10, flow(3, 1)), (51, 10, flow(1, 1)), (101, 10, flow(2, 2))]);
    assert_eq!(queue.granted(3), [150, 101, 51]);
    queue.fixture.now += 2 * S;
    queue.wait(&[(151, 50, flow(3, 1)), (52, 10, flow(1, 1)), (102, 10, flow(2, 2))]);
    assert_eq!(queue.granted(3), [151, 52, 102], "processes that ask so late had nothing to send");
}

#[test]
fn flow_that_returns_gets_its_share() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 1))]);
    queue.flows_served(10);
    let (one, two) = (flow(1, 1), queue.waiting.iter().position(|request| request.0 >= 100));
    let (gone, ..) = queue.waiting.remove(two.unwrap());
    assert_eq!(queue.fixture.release(gone), Outcome::Unknown);
    // Flow 1 goes on for 10 s, and never has nothing to send.
    queue.wait(&[(60, 10, one)]);
    queue.granted(1);
    queue.wait(&[(80, 10, one), (120, 10, flow(2, 1))]);
    let served = queue.flows_served(8);
    assert_eq!(served.iter().filter(|flow| **flow == 1).count(), 4, "{served:?}");
}

#[test]
fn request_that_gives_up_is_not_charged() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 1))]);
    for id in 51..60 {
        queue.wait(&[(id, 10, flow(1, 1))]);
        assert_eq!(queue.fixture.release(id), Outcome::Unknown);
        queue.waiting.pop();
    }
    let served = queue.flows_served(8);
    assert_eq!(served, [1, 2, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn raised_priority_moves_a_waiting_request() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 5, BATCH), (3, 5, Order::ARRIVAL), (4, 5, BATCH)]);
    assert!(!queue.ask((4, 5, INTERACTIVE)));
    queue.waiting[2].2 = INTERACTIVE;
    assert_eq!(queue.granted(3), [4, 3, 2]);
}

#[test]
fn tickets_of_another_form_are_ignored() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let field: Vec<u8> =
        redis::cmd("HGET").arg("{a}k").arg("w").query(queue.fixture.server.connection()).unwrap();
    for command in [
        redis::cmd("HDEL").arg("{a}k").arg("w"),
        redis::cmd("HSET").arg("{a}k").arg("q").arg(&field[..48]),
    ] {
        command.query::<()>(queue.fixture.server.connection()).unwrap();
    }
    queue.fixture.now += 10 * S;
    assert_eq!(queue.fixture.reserve(3, 10), Outcome::Done);
    queue.waiting.clear();
    queue.wait(&[(4, 5, BATCH), (5, 5, INTERACTIVE)]);
    assert_eq!(queue.granted(2), [5, 4]);
}

#[test]
fn number_of_tickets_of_another_form_is_ignored() {
    let mut queue = Queue::new();
    queue.wait(&[(2, 50, BATCH)]);
    let connection = queue.fixture.server.connection();
    let mut state: Vec<u8> = redis::cmd("HGET").arg("{a}k").arg("s").query(connection).unwrap();
    assert_eq!(state[40..48], 0_f64.to_le_bytes(), "older versions see no tickets");
    state[40..48].copy_from_slice(&2_f64.to_le_bytes());
    redis::cmd("HSET").arg("{a}k").arg("s").arg(state).query::<()>(connection).unwrap();
    assert_eq!(queue.granted(1), [2]);
}

#[test]
fn flows_and_tickets_that_are_not_needed_are_removed() {
    let mut queue = Queue::new();
    queue.wait(&[(50, 10, flow(1, 1)), (100, 10, flow(2, 2))]);
    assert_eq!(queue.granted(2), [50, 100]);
    let connection = queue.fixture.server.connection();
    redis::cmd("HSET").arg("{a}k").arg("q").arg("old").query::<()>(connection).unwrap();
    let exists = |queue: &mut Queue, field: &str| -> bool {
        let connection = queue.fixture.server.connection();
        redis::cmd("HEXISTS").arg("{a}k").arg(field).query(connection).unwrap()
    };
    assert!(exists(&mut queue, "w"));
    // Reservations expire, for which the hash is searched.
    queue.fixture.now += 11 * S;
    assert_eq!(queue.fixture.reserve(3, 1), Outcome::Done);
    assert!(!exists(&mut queue, "w") && !exists(&mut queue, "q"));
}

#[test]
fn number_of_a_flow_depends_on_its_name_and_the_key_of_the_hash() {
    let order = |name: &str, key| {
        let flow = Some(name.into());
        Order::of(&Precedence { flow, weight: 3, ..Precedence::default() }, key)
    };
    assert_eq!(order("a", 1), order("a", 1));
    assert_ne!(order("a", 1).flow, order("b", 1).flow);
    assert_ne!(order("a", 1).flow, order("a", 2).flow);
    assert_eq!(order("a", 1).weight, 3);
}
