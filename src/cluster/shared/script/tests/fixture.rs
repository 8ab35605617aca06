use std::time::Duration;

use super::super::{
    Answer, Call, Id, LeaseRequest, Part, RetryAfter, ServerTime, Verb, Verdict, View,
};
use super::server::Server;
use crate::engine::Rule;
use crate::quota::{Algorithm, Dimension, Limit, Margin, SettleAt, Window};

/// One key in a server, and the current time.
pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) rules: Vec<Rule>,
    pub(super) now: u64,
    pub(super) time: ServerTime,
    pub(super) view: Option<View>,
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
        Self { server: Server::start(), rules, now: START, time, view: None }
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

    pub(super) fn ask(&mut self, verb: Verb, id: u8, amounts: &[u64]) -> Answer {
        self.ask_for(verb, id, amounts, None)
    }

    pub(super) fn ask_for(
        &mut self,
        verb: Verb,
        id: u8,
        amounts: &[u64],
        lease: Option<&LeaseRequest>,
    ) -> Answer {
        let (rules, view) = (&self.rules, self.view.as_ref());
        let parts = [Part { name: b"{a}k", rules, amounts: amounts.into(), lease, view }];
        let call = Call { verb, id: Id([id; 16]), time: self.time, parts: &parts };
        self.server.call(&call, self.now)
    }

    pub(super) fn reserve(&mut self, id: u8, amount: u64) -> Verdict {
        self.ask(RESERVE, id, &[amount]).verdict
    }

    pub(super) fn settle(&mut self, id: u8, amount: u64) -> Verdict {
        self.ask(Verb::Settle { unsure: false }, id, &[amount]).verdict
    }

    pub(super) fn release(&mut self, id: u8) -> Verdict {
        self.ask(Verb::Release { unsure: false }, id, &[0]).verdict
    }

    /// Returns the used and held amounts of the first rule.
    pub(super) fn level(&mut self) -> (u64, u64) {
        self.look().buckets[0]
    }

    pub(super) fn look(&mut self) -> View {
        let view = self.view.take();
        let amounts: Vec<u64> = self.rules.iter().map(|_| 0).collect();
        let seen = self.ask(Verb::Look, 0, &amounts).views.remove(0);
        self.view = view;
        seen
    }
}

pub(super) fn refused(wait: RetryAfter) -> Verdict {
    Verdict::Refused { part: 0, rule: 0, wait }
}

/// A reservation for ten seconds.
pub(super) const RESERVE: Verb = Verb::Reserve { ttl: 10 * S, waits: false };

/// One second, in microseconds.
pub(super) const S: u64 = 1_000_000;

pub(super) const START: u64 = 1_800_000_000 * S;
