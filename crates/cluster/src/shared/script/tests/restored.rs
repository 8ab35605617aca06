//! Several processes share a key on a server that loses its data again and again, with requests in flight. What
//! they report must make the state that was lost, whatever the order of the reports.

use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};
use paceline_testing::full::full_or;

use super::super::{
    Amounts, Call, Id, Operation, Order, Outcome, Part, Response, ServerTime, View,
};
use super::fixture::{ALL_ALGORITHMS, S, START};
use super::random::Random;
use super::server::Server;
use crate::shared::piece::Piece;
use crate::shared::views::{Answer, Views};

#[test]
fn reports_restore_the_lost_state() {
    let mut server = Server::start();
    for seed in 0..full_or(300, 15) {
        for algorithm in ALL_ALGORITHMS {
            World::new(seed, algorithm).run(&mut server);
        }
    }
}

struct World {
    case: String,
    random: Random,
    algorithm: Algorithm,
    name: Vec<u8>,
    piece: Piece,
    processes: [Views; 3],
    /// The requests in flight, with their processes and amounts.
    open: Vec<(usize, Id, Amounts)>,
    /// The times at which requests were granted, with their number. Released ones don't count.
    grants: Vec<(u64, Id, u64)>,
    now: u64,
    next: u64,
}

impl World {
    fn new(seed: u64, algorithm: Algorithm) -> Self {
        let window = Window::new(Duration::from_micros(WINDOW)).unwrap();
        let rule = |dimension, settle| {
            let limit = Limit::new(dimension, LIMIT, window).unwrap();
            Rule::new(&limit, algorithm, Margin::NONE, settle)
        };
        let rules = [
            rule(Dimension::Requests, SettleAt::Send),
            rule(Dimension::Tokens, SettleAt::End),
            rule(Dimension::Concurrency, SettleAt::End),
        ];
        let case = format!("{algorithm:?}, seed {seed}");
        let (name, amounts) = (format!("{{r}}{case}").into_bytes(), Amounts::new());
        let piece = Piece { key: "k".into(), rules: Arc::from(rules), amounts, lease: None };
        Self {
            case,
            random: Random(seed),
            algorithm,
            name,
            piece,
            processes: Default::default(),
            open: Vec::new(),
            grants: Vec::new(),
            now: START + seed * S / 7,
            next: 0,
        }
    }

    fn run(mut self, server: &mut Server) {
        for _ in 0..8 {
            for _ in 0..40 {
                self.now += self.random.pick(&[1, 100, 1_000, S / 10, S / 2]);
                self.step(server);
            }
            self.lose(server);
        }
        for (index, (from, ..)) in self.grants.iter().enumerate() {
            let within = self.grants[index..].iter().take_while(|(at, ..)| *at < from + WINDOW);
            let sum: u64 = within.map(|(.., amount)| amount).sum();
            assert!(sum <= LIMIT || self.algorithm != Algorithm::SlidingWindow, "{}", self.case);
        }
    }

    /// Makes a request, or ends one.
    fn step(&mut self, server: &mut Server) {
        if !self.open.is_empty() && self.random.one_in(2) {
            let index = usize::try_from(self.random.below(self.open.len() as u64)).unwrap();
            let (process, id, mut amounts) = self.open.swap_remove(index);
            amounts[1] = self.random.below(amounts[1] + 1);
            let operation = match self.random.one_in(6) {
                true => {
                    self.grants.retain(|(_, granted, _)| *granted != id);
                    Operation::Release { unsure: false }
                }
                false => Operation::Settle { unsure: false },
            };
            let response = self.call(server, process, operation, id, &amounts);
            assert_eq!(response.outcome, Outcome::Done, "{}", self.case);
            return;
        }
        let process = usize::try_from(self.random.below(3)).unwrap();
        self.next += 1;
        let mut id = [0; 16];
        id[0] = process as u8 + 1;
        id[8..].copy_from_slice(&self.next.to_le_bytes());
        let amounts: Amounts =
            [1 + self.random.below(3), self.random.below(8), 1].as_slice().into();
        let operation = Operation::Reserve { ttl: 60 * S, waits: false, order: Order::ARRIVAL };
        let response = self.call(server, process, operation, Id(id), &amounts);
        if response.outcome == Outcome::Done {
            self.grants.push((self.now, Id(id), amounts[0]));
            self.open.push((process, Id(id), amounts));
        }
    }

    /// Makes a call as the store does: first with what identifies the state that the process knows.
    fn call(
        &mut self,
        server: &mut Server,
        process: usize,
        operation: Operation,
        id: Id,
        amounts: &Amounts,
    ) -> Response {
        let piece = Piece { amounts: amounts.clone(), ..self.piece.clone() };
        let view = self.processes[process].identity("k");
        let mut response = self.send(server, process, operation, id, &piece, view.as_ref());
        if response.outcome == Outcome::Lost {
            let view = self.processes[process].report("k", &piece.rules);
            response = self.send(server, process, operation, id, &piece, view.as_ref());
        }
        let taken = super::super::super::known_uses::taken(
            operation,
            &piece.rules,
            &piece.amounts,
            &response,
        );
        let views = &mut self.processes[process];
        views.record("k", &piece.rules, response.views[0].clone(), &taken);
        let answer = Answer::of(&response.outcome, 0);
        views.record_reservation(operation, id, &piece, response.time, answer);
        response
    }

    fn send(
        &self,
        server: &mut Server,
        process: usize,
        operation: Operation,
        id: Id,
        piece: &Piece,
        view: Option<&View>,
    ) -> Response {
        let part = Part {
            name: &self.name,
            rules: &piece.rules,
            amounts: piece.amounts.clone(),
            lease: None,
            view,
            wants_uses: self.processes[process].wants_uses("k", &piece.rules, self.now),
        };
        let time = ServerTime::default();
        let parts = [part];
        server.call(&Call { operation, id, time, generation: 0, parts: &parts }, self.now)
    }

    /// Loses the state, and has all processes report, one of them twice.
    fn lose(&mut self, server: &mut Server) {
        self.now += self.random.pick(&[1, S / 10]);
        let before = self.state(server);
        redis::cmd("FLUSHALL").exec(server.connection()).unwrap();
        let first = usize::try_from(self.random.below(3)).unwrap();
        for turn in 0..4 {
            let process = (first + turn * 2) % 3;
            let Some(view) = self.processes[process].report("k", &self.piece.rules) else {
                continue;
            };
            let mut id = [0; 16];
            id[0] = process as u8 + 1;
            let piece = self.piece.clone();
            self.send(server, process, Operation::Read, Id(id), &piece, Some(&view));
        }
        let after = self.state(server);
        for (rule, (old, new)) in before.iter().zip(&after).enumerate() {
            let case = format!("{}, rule {rule}: {before:?}, restored {after:?}", self.case);
            assert_eq!(old.1, new.1, "held of {case}");
            // Parts of a token count as whole ones. Other processes' usage is known to be over when it is seen.
            assert!(new.0 >= old.0, "used of {case}");
            assert!(new.0 <= old.0 + SEEN_LATE, "used of {case}");
        }
    }

    fn state(&self, server: &mut Server) -> Vec<(u64, u64)> {
        let response = self.send(server, 0, Operation::Read, Id([9; 16]), &self.piece, None);
        response.views[0].buckets.to_vec()
    }
}

/// What processes used in the time between two calls of another one.
const SEEN_LATE: u64 = 3;
const LIMIT: u64 = 40;
const WINDOW: u64 = 10 * S;
