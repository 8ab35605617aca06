//! Requests that wait for one key.

use std::iter;

use paceline_limiter::quota::{Algorithm, Dimension};

use super::super::{Operation, Order, Outcome};
use super::fixture::{Fixture, S};

pub(super) const BATCH: Order = Order { priority: -10, ..Order::ARRIVAL };
pub(super) const INTERACTIVE: Order = Order { priority: 10, ..Order::ARRIVAL };
/// Half a second, in which tickets are renewed.
pub(super) const TICK: u64 = S / 2;

/// Requests that wait for a bucket of 100 requests, of which one refills per second. Each has one of the amounts
/// and orders, and asks in every tick.
pub(super) struct Queue {
    pub(super) fixture: Fixture,
    pub(super) waiting: Vec<(u8, u64, Order)>,
    /// The amounts that each request needs of other limits.
    pub(super) other_amounts: Vec<u64>,
}

impl Queue {
    pub(super) fn new() -> Self {
        let mut fixture = Fixture::requests();
        assert_eq!(fixture.reserve(1, 100), Outcome::Done);
        Self::of(fixture)
    }

    /// Requests that wait for a place of a concurrency limit of one, which request 1 has.
    pub(super) fn for_a_place() -> Self {
        let mut fixture = Fixture::with(&[(Dimension::Concurrency, 1, Algorithm::TokenBucket)]);
        assert_eq!(fixture.reserve(1, 1), Outcome::Done);
        Self::of(fixture)
    }

    fn of(fixture: Fixture) -> Self {
        Self { fixture, waiting: Vec::new(), other_amounts: Vec::new() }
    }

    /// Lets requests with these ids wait.
    pub(super) fn wait(&mut self, requests: &[(u8, u64, Order)]) {
        for &request in requests {
            assert!(!self.ask(request));
            self.waiting.push(request);
        }
    }

    pub(super) fn ask(&mut self, (id, amount, order): (u8, u64, Order)) -> bool {
        let operation = Operation::Reserve { ttl: 10 * S, waits: true, order };
        let amounts: Vec<u64> =
            iter::once(amount).chain(self.other_amounts.iter().copied()).collect();
        self.fixture.call(operation, id, &amounts).outcome == Outcome::Done
    }

    /// Returns the id of the next request that is granted, within 100 s.
    pub(super) fn next(&mut self) -> Option<u8> {
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

    pub(super) fn granted(&mut self, count: usize) -> Vec<u8> {
        iter::from_fn(|| self.next()).take(count).collect()
    }

    /// Returns the flows of the next requests that are granted, of which each is followed by another one of its
    /// flow. Flow `n` has the ids from `n * 50`.
    pub(super) fn flows_served(&mut self, count: usize) -> Vec<u8> {
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

pub(super) fn flow(number: u64, weight: u32) -> Order {
    Order { flow: number << 40, weight, ..Order::ARRIVAL }
}
