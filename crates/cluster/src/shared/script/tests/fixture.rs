use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};

use super::super::{
    Call, Id, KnownReservation, LeaseRequest, Operation, Order, Outcome, Part, Response,
    RetryAfter, ServerTime, View,
};
use super::server::Server;

/// One key in a server, and the current time.
pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) rules: Vec<Rule>,
    pub(super) now: u64,
    pub(super) time: ServerTime,
    pub(super) view: Option<View>,
    pub(super) wants_uses: bool,
}

impl Fixture {
    /// Creates a key with these limits; all dimensions except requests are held until settled.
    pub(super) fn with(limits: &[(Dimension, u64, Algorithm)]) -> Self {
        let rule = |(dimension, amount, algorithm): &(Dimension, u64, Algorithm)| {
            let window = Window::new(Duration::from_secs(*amount)).unwrap();
            let limit = Limit::new(dimension.clone(), *amount, window).unwrap();
            let settle = match dimension {
                Dimension::Requests => SettleAt::Send,
                _ => SettleAt::End,
            };
            Rule::new(&limit, *algorithm, Margin::NONE, settle)
        };
        let rules = limits.iter().map(rule).collect();
        let time = ServerTime::default();
        Self { server: Server::start(), rules, now: START, time, view: None, wants_uses: false }
    }

    /// Creates a token bucket of 100 tokens that refills by one per second; tokens are held until
    /// settled.
    pub(super) fn tokens() -> Self {
        Self::with(&[(Dimension::Tokens, 100, Algorithm::TokenBucket)])
    }

    /// Creates a token bucket of 100 requests that refills by one per second.
    pub(super) fn requests() -> Self {
        Self::with(&[(Dimension::Requests, 100, Algorithm::TokenBucket)])
    }

    pub(super) fn call(&mut self, operation: Operation, id: u8, amounts: &[u64]) -> Response {
        self.call_with_lease(operation, id, amounts, None)
    }

    pub(super) fn call_with_lease(
        &mut self,
        operation: Operation,
        id: u8,
        amounts: &[u64],
        lease: Option<&LeaseRequest>,
    ) -> Response {
        let (rules, view, wants_uses) = (&self.rules, self.view.as_ref(), self.wants_uses);
        let amounts = amounts.into();
        let parts = [Part { name: b"{a}k", rules, amounts, lease, view, wants_uses }];
        let call = Call {
            operation,
            id: Id([id; 16]),
            time: self.time.clone(),
            generation: 0,
            parts: &parts,
        };
        self.server.call(&call, self.now)
    }

    pub(super) fn reserve(&mut self, id: u8, amount: u64) -> Outcome {
        self.call(RESERVE, id, &[amount]).outcome
    }

    pub(super) fn settle(&mut self, id: u8, amount: u64) -> Outcome {
        self.call(Operation::Settle { unsure: false }, id, &[amount]).outcome
    }

    pub(super) fn release(&mut self, id: u8) -> Outcome {
        self.call(Operation::Release { unsure: false }, id, &[0]).outcome
    }

    /// Returns what a process knows of a reservation that it has just made.
    pub(super) fn reservation(&self, id: u8, amounts: &[u64]) -> KnownReservation {
        let (rules, amounts) = (self.rules.as_slice().into(), amounts.into());
        let (id, call_number) = (Id([id; 16]), None);
        let (sent, renewed, ttl) = (self.now, self.now, 10 * S);
        KnownReservation { id, sent, renewed, ttl, call_number, rules, amounts }
    }

    /// Returns the used and held amounts of the first rule.
    pub(super) fn level(&mut self) -> (u64, u64) {
        self.read_state().buckets[0]
    }

    pub(super) fn read_state(&mut self) -> View {
        let (view, time) = (self.view.take(), std::mem::take(&mut self.time));
        let amounts: Vec<u64> = self.rules.iter().map(|_| 0).collect();
        let state = self.call(Operation::Read, 0, &amounts).views.remove(0);
        (self.view, self.time) = (view, time);
        state
    }
}

pub(super) fn refused(wait: RetryAfter) -> Outcome {
    Outcome::Refused { part: 0, rule: 0, wait }
}

pub(super) const ALL_ALGORITHMS: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::SlidingWindow,
    Algorithm::FixedWindow,
    Algorithm::ClockWindow,
];

/// A reservation that expires after ten seconds.
pub(super) const RESERVE: Operation =
    Operation::Reserve { ttl: 10 * S, waits: false, order: Order::ARRIVAL };

/// One second, in microseconds.
pub(super) const S: u64 = 1_000_000;

pub(super) const START: u64 = 1_800_000_000 * S;
