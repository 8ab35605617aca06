//! Renews leases of several keys in one call, through the script and through the script without its fast
//! paths, and compares the responses.

use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};
use paceline_testing::full::full_or;

use super::super::{
    Call, Id, LeaseAnswer, LeaseRequest, Operation, Order, Outcome, Part, Response, ServerTime,
};
use super::fixture::{S, START};
use super::random::Random;
use super::server::Server;

#[test]
fn lease_path_responds_as_the_script_without_it() {
    let (mut fast, mut slow) = (Server::start(), Server::without_fast_path());
    for seed in 0..full_or(200, 10) {
        let counts = Schedule::new(seed).run(&mut fast, &mut slow);
        assert!(seed > 0 || counts.iter().all(|count| *count > 10), "{counts:?}");
    }
}

/// A lease of one key by one process.
#[derive(Debug, Clone)]
struct Lease {
    id: Id,
    key: usize,
    calls: u32,
    granted: Vec<u64>,
}

struct Schedule {
    seed: u64,
    random: Random,
    keys: Vec<(Vec<u8>, Vec<Rule>)>,
    leases: Vec<Lease>,
    now: u64,
    next: u8,
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let keys: Vec<_> = (0..5)
            .map(|key| {
                let rules = (0..=random.below(2)).map(|at| rule(&mut random, at)).collect();
                (format!("l:{{{seed}}}{key}").into_bytes(), rules)
            })
            .collect();
        let lease = |number: u8| Lease {
            id: Id([number; 16]),
            key: usize::from(number) % 5,
            calls: 0,
            granted: Vec::new(),
        };
        let leases = (0..15).map(lease).collect();
        Self { seed, random, keys, leases, now: START, next: 100 }
    }

    /// Returns the numbers of grants, refusals and unknown leases.
    fn run(mut self, fast: &mut Server, slow: &mut Server) -> [u32; 3] {
        let mut counts = [0; 3];
        for step in 0..150 {
            self.now += self.random.pick(&[0, 1, 1_000, 200_000, 400_000, 3 * S]);
            if self.random.one_in(4) {
                self.reserve(fast, slow);
                continue;
            }
            let process = self.random.below(3);
            let first = usize::try_from(process * 5).unwrap();
            let held = (first..first + 5).filter(|_| !self.random.one_in(4)).collect::<Vec<_>>();
            let requests: Vec<_> = held.iter().map(|lease| self.request(*lease)).collect();
            let parts: Vec<_> = held
                .iter()
                .zip(&requests)
                .map(|(lease, request)| self.part(*lease, request))
                .collect();
            let call = self.call(Operation::Lease { ttl: 2 * S }, Id([99; 16]), &parts);
            let [response, expected] =
                [&mut *fast, &mut *slow].map(|server| server.call(&call, self.now));
            assert_eq!(response, expected, "seed {}, step {step}: {call:?}", self.seed);
            self.record(&held, response, &mut counts);
        }
        counts
    }

    fn call<'a>(&self, operation: Operation, id: Id, parts: &'a [Part<'a>]) -> Call<'a> {
        Call {
            generation: 0,
            operation,
            id,
            time: ServerTime { expected: self.now, ..ServerTime::default() },
            parts,
        }
    }

    /// Another process uses some of a key.
    fn reserve(&mut self, fast: &mut Server, slow: &mut Server) {
        let (name, rules) = &self.keys[usize::try_from(self.random.below(5)).unwrap()];
        let amounts = rules.iter().map(|_| self.random.below(4)).collect();
        self.next = self.next.wrapping_add(1).max(100);
        let waits = self.random.one_in(3);
        let parts = [Part { name, rules, amounts, lease: None, view: None, wants_uses: false }];
        let call = self.call(
            Operation::Reserve { ttl: S, waits, order: Order::ARRIVAL },
            Id([self.next; 16]),
            &parts,
        );
        assert_eq!(fast.call(&call, self.now), slow.call(&call, self.now), "{call:?}");
    }

    fn request(&mut self, lease: usize) -> (Vec<u64>, LeaseRequest) {
        let random = &mut self.random;
        let lease = &mut self.leases[lease];
        // Now and then a call is repeated, or one is lost.
        lease.calls += random.pick(&[1, 1, 1, 1, 1, 1, 0, 2]);
        let rules = self.keys[lease.key].1.len();
        let granted = |at: usize| lease.granted.get(at).copied().unwrap_or(0);
        let used: Vec<_> = (0..rules).map(|at| random.below(granted(at) + 1)).collect();
        let request = LeaseRequest {
            id: lease.id,
            call_number: lease.calls,
            first_report: lease.calls.saturating_sub(u32::from(random.one_in(5))),
            inflight: (0..rules).map(|at| random.below(granted(at) - used[at] + 1)).collect(),
            least: (0..rules).map(|_| random.pick(&[0, 0, 0, 1, 10])).collect(),
            wanted: (0..rules).map(|_| random.pick(&[0, 1, 5, 20])).collect(),
        };
        (used, request)
    }

    fn part<'a>(&'a self, lease: usize, (used, request): &'a (Vec<u64>, LeaseRequest)) -> Part<'a> {
        let (name, rules) = &self.keys[self.leases[lease].key];
        Part {
            name,
            rules,
            amounts: used[..].into(),
            lease: Some(request),
            view: None,
            wants_uses: false,
        }
    }

    fn record(&mut self, held: &[usize], response: Response, counts: &mut [u32; 3]) {
        let Outcome::Leases(answers) = response.outcome else { panic!("{response:?}") };
        for (lease, answer) in held.iter().zip(answers) {
            let lease = &mut self.leases[*lease];
            match answer {
                LeaseAnswer::Granted(granted) => {
                    lease.granted = granted.to_vec();
                    counts[0] += 1;
                }
                LeaseAnswer::Refused(_) => counts[1] += 1,
                LeaseAnswer::Unknown => {
                    // A new lease follows.
                    lease.id.0[0] = lease.id.0[0].wrapping_add(16);
                    (lease.calls, lease.granted) = (0, Vec::new());
                    counts[2] += 1;
                }
            }
        }
    }
}

fn rule(random: &mut Random, at: u64) -> Rule {
    let dimension = [Dimension::Requests, Dimension::Tokens, Dimension::InputTokens]
        [usize::try_from(at).unwrap()]
    .clone();
    let window = Duration::from_millis(random.pick(&[1_000, 10_000, 3_600_000]));
    let limit = Limit::new(dimension, 20 + random.below(60), Window::new(window).unwrap()).unwrap();
    let algorithm =
        random.pick(&[Algorithm::TokenBucket, Algorithm::TokenBucket, Algorithm::SlidingWindow]);
    let margin = random.pick(&[Margin::NONE, Margin::default()]);
    Rule::new(&limit, algorithm, margin, SettleAt::Send)
}
