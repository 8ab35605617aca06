//! Two processes share the limits of two keys while the server's clock is set forward and back. A ledger in
//! true time judges what is granted.

use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};
use paceline_testing::full::full_or;
use smallvec::smallvec;

use super::super::{Call, Id, Operation, Order, Outcome, Part};
use super::fixture::{S, START};
use super::random::Random;
use super::server::Server;
use crate::shared::piece::Piece;
use crate::shared::views::Views;

#[test]
fn set_clock_gives_no_limit_twice_and_takes_none_away() {
    let mut server = Server::start();
    for seed in 0..full_or(600, 30) {
        let algorithms = [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
        for algorithm in algorithms {
            World::new(seed, algorithm).run(&mut server);
        }
    }
}

/// Two keys with a limit of 20 in 100 seconds each, and two processes that use them.
struct World {
    seed: u64,
    random: Random,
    algorithm: Algorithm,
    pieces: [Piece; 2],
    processes: [Views; 2],
    /// True time in microseconds, and the difference of the server's clock to it.
    time: u64,
    offset: i64,
    /// The granted amounts of each key, with the true time of each.
    grants: [Vec<(u64, u64)>; 2],
    next: u64,
}

impl World {
    fn new(seed: u64, algorithm: Algorithm) -> Self {
        let window = Window::new(Duration::from_micros(WINDOW)).unwrap();
        let limit = Limit::new(Dimension::Requests, LIMIT, window).unwrap();
        let rules: Arc<[Rule]> =
            Arc::from([Rule::new(&limit, algorithm, Margin::NONE, SettleAt::Send)]);
        let pieces = ["a", "b"].map(|name| {
            let key = format!("{seed} {algorithm:?} {name}").as_str().into();
            Piece { key, rules: Arc::clone(&rules), amounts: smallvec![0], lease: None }
        });
        let processes = [Views::default(), Views::default()];
        let (random, grants) = (Random(seed), [Vec::new(), Vec::new()]);
        Self { seed, random, algorithm, pieces, processes, time: START, offset: 0, grants, next: 0 }
    }

    fn run(mut self, server: &mut Server) {
        for _ in 0..150 {
            self.time += self.random.pick(&[1_000, S / 3, S, 5 * S, 30 * S]);
            // A process with a connection sends a heartbeat each second.
            for process in 0..2 {
                self.heartbeat(process);
            }
            if self.random.one_in(6) {
                let by = self.random.pick(&[2, 60, 300, 4_000]) * 1_000_000;
                self.offset += if self.random.one_in(2) { by } else { -by };
            }
            let (process, amount) = (usize::from(self.random.one_in(2)), 1 + self.random.below(8));
            let keys = self.random.pick(&[&[0, 1][..], &[0], &[1]]);
            self.reserve(server, process, keys, amount);
        }
        // Without further changes, the whole limit is available after its time. The time between the last call
        // and a change back is lost.
        self.reserve(server, 0, &[0, 1], 1);
        self.time += WINDOW + 2 * S;
        assert!(
            self.reserve(server, 0, &[0, 1], LIMIT),
            "{:?}, seed {}",
            self.algorithm,
            self.seed
        );
        self.grants.iter().for_each(|grants| self.assert_limit(grants));
    }

    fn heartbeat(&mut self, process: usize) {
        let (own, server) = (self.own_time(), self.server_time());
        self.processes[process].record_time("", server, own, own);
    }

    fn own_time(&self) -> Timestamp {
        Timestamp::from_nanos(self.time * 1_000)
    }

    fn server_time(&self) -> u64 {
        self.time.saturating_add_signed(self.offset)
    }

    /// Makes a request of a process under these keys; returns whether it was granted.
    fn reserve(
        &mut self,
        server: &mut Server,
        process: usize,
        keys: &[usize],
        amount: u64,
    ) -> bool {
        self.next += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.next.to_le_bytes());
        let (own, now) = (self.own_time(), self.server_time());
        let pieces: Vec<Piece> = keys
            .iter()
            .map(|key| Piece { amounts: smallvec![amount], ..self.pieces[*key].clone() })
            .collect();
        let name = |piece: &Piece| format!("{{j}}{}", &*piece.key).into_bytes();
        let names: Vec<Vec<u8>> = pieces.iter().map(name).collect();
        let operation = Operation::Reserve { ttl: 10 * S, waits: false, order: Order::ARRIVAL };
        for _ in 0..3 {
            let views = &mut self.processes[process];
            let time = views.time("", &pieces, own);
            let known: Vec<_> = pieces.iter().map(|piece| views.identity(&piece.key)).collect();
            let parts: Vec<Part<'_>> = pieces
                .iter()
                .zip(&names)
                .zip(&known)
                .map(|((piece, name), view)| Part {
                    name,
                    rules: &piece.rules,
                    amounts: piece.amounts.clone(),
                    lease: None,
                    view: view.as_ref(),
                    wants_uses: false,
                })
                .collect();
            let response = server
                .call(&Call { operation, id: Id(id), time, generation: 0, parts: &parts }, now);
            views.record_time("", response.time, own, own);
            if response.outcome == Outcome::Stale {
                continue;
            }
            for (piece, view) in pieces.iter().zip(&response.views) {
                views.record(&piece.key, &piece.rules, view.clone(), &[]);
            }
            let is_granted = response.outcome == Outcome::Done;
            if is_granted {
                keys.iter().for_each(|key| self.grants[*key].push((self.time, amount)));
            }
            return is_granted;
        }
        panic!("{:?}, seed {}: the call stays stale", self.algorithm, self.seed);
    }

    /// Windows that start at their first use are not judged: after the clock was set back, they can end later
    /// than the provider's.
    fn assert_limit(&self, grants: &[(u64, u64)]) {
        let case = format!("{:?}, seed {}: {grants:?}", self.algorithm, self.seed);
        let (mut level, mut last) = (i128::from(LIMIT * WINDOW), START);
        for (at, (time, amount)) in grants.iter().enumerate() {
            let refilled = i128::from((time - last) * LIMIT);
            level = (level + refilled).min(i128::from(LIMIT * WINDOW));
            level -= i128::from(amount * WINDOW);
            last = *time;
            match self.algorithm {
                Algorithm::TokenBucket => assert!(level >= 0, "at {time}, {case}"),
                Algorithm::SlidingWindow => {
                    let within = grants[at..].iter().take_while(|(end, _)| *end < time + WINDOW);
                    assert!(within.map(|(_, amount)| amount).sum::<u64>() <= LIMIT, "{case}");
                }
                _ => {}
            }
        }
    }
}

const LIMIT: u64 = 20;
const WINDOW: u64 = 100 * S;
