//! Runs the same random calls through the script and through the script without its fast path, and
//! compares the responses: waiting requests and several keys per call. Clock changes are left out:
//! states move by the time since their last write, and the two write at different times.

use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};
use paceline_testing::full::full_or;

use super::super::{Call, Id, Operation, Order, Outcome, Part, Response, ServerTime};
use super::random::Random;
use super::server::Server;
use crate::shared::server_clock::Jump;

#[test]
fn fast_path_responds_as_the_script_without_it() {
    let (mut fast, mut slow) = (Server::start(), Server::without_fast_path());
    for seed in 0..full_or(100, 8) {
        Schedule::new(seed).run(&mut fast, &mut slow);
    }
}

/// A request of a schedule, with its keys and amounts.
#[derive(Debug, Clone)]
struct Request {
    id: Id,
    order: Order,
    keys: Vec<usize>,
    amounts: Vec<Vec<u64>>,
}

/// Random calls on three keys of one slot.
struct Schedule {
    seed: u64,
    random: Random,
    keys: Vec<(Vec<u8>, Vec<Rule>)>,
    waiting: Vec<Request>,
    held: Vec<Request>,
    now: u64,
    /// The time at which all tickets were renewed last.
    renewed: u64,
    /// The last change of the clock forward, until all keys have been seen since.
    jump: Option<Jump>,
    next: u64,
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let keys = (0..3)
            .map(|key| {
                let rules = (0..=random.below(2)).map(|at| rule(&mut random, at)).collect();
                (format!("f:{{{seed}}}{key}").into_bytes(), rules)
            })
            .collect();
        let (waiting, held) = (Vec::new(), Vec::new());
        Self { seed, random, keys, waiting, held, now: START, renewed: START, jump: None, next: 0 }
    }

    fn run(mut self, fast: &mut Server, slow: &mut Server) {
        let mut granted_after_wait = 0;
        for step in 0..400 {
            self.now += self.random.pick(&[0, 1, 1_000, 30_000, 200_000, 400_000]);
            self.set_clock();
            let mut calls = vec![self.pick()];
            // Waiting requests renew their tickets: the two drop expired ones at different times.
            if self.now - self.renewed >= 400_000 {
                self.renewed = self.now;
                let again = |request: &Request| (reserve(request.order, true), request.clone());
                calls.splice(0..0, self.waiting.iter().map(again));
            }
            for (operation, request) in calls {
                let [response, expected] =
                    [&mut *fast, &mut *slow].map(|server| self.call(server, operation, &request));
                assert_eq!(
                    response, expected,
                    "seed {}, step {step}: {operation:?} {request:?}",
                    self.seed
                );
                granted_after_wait += usize::from(self.record(operation, request, &response));
            }
        }
        assert!(self.seed != 0 || granted_after_wait > 0, "no waiting request was granted");
    }

    fn call(&self, server: &mut Server, operation: Operation, request: &Request) -> Response {
        let mut parts = Vec::new();
        for (key, amounts) in request.keys.iter().zip(&request.amounts) {
            let (name, rules) = &self.keys[*key];
            let amounts = amounts[..].into();
            let wants_uses = self.now.is_multiple_of(2);
            parts.push(Part { name, rules, amounts, lease: None, view: None, wants_uses });
        }
        let time = ServerTime { expected: self.now, jumps: self.jump.into_iter().collect() };
        let call = Call { operation, id: request.id, time, generation: 0, parts: &parts };
        server.call(&call, self.now)
    }

    /// Sets the clock forward from time to time. Waiting requests renew their tickets then. A clock that
    /// is set back keeps the waits from the last write, which only the slow path makes at a renewal.
    fn set_clock(&mut self) {
        let by = self.random.pick(&[2, 300, 86_400]) * 1_000_000;
        match self.random.below(80) {
            0 => {
                (self.now, self.jump, self.renewed) =
                    (self.now + by, Some(Jump { at: self.now + by, by }), 0)
            }
            // All keys have been seen since.
            1 => self.jump = None,
            _ => {}
        }
    }

    /// Returns a new request, or a call on behalf of an earlier one.
    fn pick(&mut self) -> (Operation, Request) {
        let choice = self.random.below(12);
        if choice < 4 && !self.held.is_empty() {
            let index = usize::try_from(self.random.below(self.held.len() as u64)).unwrap();
            let mut request = self.held.swap_remove(index);
            if choice == 0 {
                return (Operation::Release { unsure: false }, request);
            }
            if choice == 1 {
                request.amounts.iter_mut().flatten().for_each(|amount| *amount /= 2);
            }
            return (Operation::Settle { unsure: false }, request);
        }
        if choice < 8 && !self.waiting.is_empty() {
            let index = usize::try_from(self.random.below(self.waiting.len() as u64)).unwrap();
            let request = self.waiting[index].clone();
            let operation = match self.random.below(8) {
                0 => Operation::Release { unsure: false },
                _ => reserve(request.order, true),
            };
            return (operation, request);
        }
        self.next += 1;
        let mut id = [7; 16];
        id[8..].copy_from_slice(&(self.seed * 1_000 + self.next).to_le_bytes());
        let mut keys: Vec<usize> = (0..3).filter(|_| self.random.one_in(2)).collect();
        if keys.is_empty() {
            keys.push(0);
        }
        let random = &mut self.random;
        let amounts = keys
            .iter()
            .map(|key| self.keys[*key].1.iter().map(|rule| amount(random, rule)).collect())
            .collect();
        let order = self.order();
        let request = Request { id: Id(id), order, keys, amounts };
        (reserve(order, !choice.is_multiple_of(3)), request)
    }

    /// Returns a random order; in half of the schedules there is only one.
    fn order(&mut self) -> Order {
        if self.seed.is_multiple_of(2) {
            return Order::ARRIVAL;
        }
        let (priority, flow) = (self.random.pick(&[0, 0, 7]), self.random.below(3) << 32);
        let (flow, weight) = (flow << 24, self.random.pick(&[1, 2]));
        Order { priority, flow, weight, max_starvation: 5_000_000 }
    }

    /// Records a response; returns whether a waiting request was granted.
    fn record(&mut self, operation: Operation, request: Request, response: &Response) -> bool {
        let waiting = self.waiting.len();
        match (operation, &response.outcome) {
            (Operation::Reserve { .. }, Outcome::Done) => {
                self.waiting.retain(|other| other.id != request.id);
                self.held.push(request);
            }
            (Operation::Reserve { waits: true, .. }, Outcome::Refused { .. }) => {
                if !self.waiting.iter().any(|other| other.id == request.id) {
                    self.waiting.push(request);
                }
            }
            _ => self.waiting.retain(|other| other.id != request.id),
        }
        matches!(operation, Operation::Reserve { waits: true, .. }) && self.waiting.len() < waiting
    }
}

fn reserve(order: Order, waits: bool) -> Operation {
    Operation::Reserve { ttl: TTL, waits, order }
}

fn amount(random: &mut Random, rule: &Rule) -> u64 {
    match rule.dimension() {
        Dimension::Concurrency => 1,
        _ => random.pick(&[0, 1, 1, 2, 5, 30]),
    }
}

fn rule(random: &mut Random, at: u64) -> Rule {
    let dimension = [Dimension::Requests, Dimension::Tokens, Dimension::Concurrency]
        [usize::try_from(at).unwrap()]
    .clone();
    let window = random.pick(&[100, 1_000, 10_000, 3_600_000]);
    let limit = 3 + random.below(40);
    let limit = Limit::new(dimension, limit, Window::new(Duration::from_millis(window)).unwrap());
    let algorithm = random.pick(&[Algorithm::TokenBucket, Algorithm::SlidingWindow]);
    let settle = random.pick(&[SettleAt::Send, SettleAt::End]);
    Rule::new(&limit.unwrap(), algorithm, Margin::NONE, settle)
}

const START: u64 = 1_800_000_000_000_000;
const TTL: u64 = 20_000_000;
