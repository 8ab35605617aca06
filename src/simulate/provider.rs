//! The provider as a pure state machine.

use std::collections::BTreeMap;

use super::account::Account;
use super::answer::Answer;
use super::call::Call;
use super::charge::input_tokens;
use super::headers::{self, Headers};
use super::refusal::{ORGANIZATION, Refusal};
use super::rejection::Rejection;
use super::reply::{Reply, Usage};
use super::settings::Settings;
use super::sizes::{Draws, id};
use super::stats::{Counters, Stats};

/// A provider that enforces its limits, in virtual time.
///
/// The same settings and the same calls give the same answers. Time is in nanoseconds since any
/// epoch; a time before the last one counts as the last one.
#[derive(Debug)]
pub struct Provider {
    settings: Settings,
    models: BTreeMap<String, Model>,
    total: Counters,
    now: u64,
}

#[derive(Debug)]
struct Model {
    account: Account,
    counters: Counters,
}

impl Provider {
    /// A provider that nobody has called yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, models: BTreeMap::new(), total: Counters::default(), now: 0 }
    }

    /// Answers a POST of `body` to `path`, with or without `/v1`, received whole at `now_ns`.
    ///
    /// It is charged at this moment. What is refused or malformed takes nothing.
    pub fn receive(&mut self, now_ns: u64, path: &str, body: &[u8]) -> Reply {
        let nth = self.total.received + 1;
        let id = id(self.settings.seed, nth);
        let mut reply = match self.call(nth, path, body) {
            Ok(call) => self.answer(now_ns, &call, Draws::new(self.settings.seed, body), &id),
            Err(rejection) => {
                self.total.fail();
                Reply::rejected(&rejection, Headers::new())
            }
        };
        reply.headers.push(("openai-organization", ORGANIZATION.to_owned()));
        reply.headers.push(("x-request-id", format!("req_{id}")));
        reply
    }

    /// Takes `requests` and `tokens` from the limits of `model` at `now_ns`: all or nothing.
    ///
    /// This is [`receive`](Self::receive) without its bytes, for traces.
    ///
    /// # Errors
    ///
    /// A limit has no room; nothing was taken.
    pub fn admit(
        &mut self,
        now_ns: u64,
        model: &str,
        requests: u64,
        tokens: u64,
    ) -> Result<(), Refusal> {
        self.now = self.now.max(now_ns);
        let now = self.now;
        let admitted = self.model(model).account.admit(now, model, requests, tokens);
        self.count(model, |counters| match admitted {
            Ok(()) => counters.admit(tokens),
            Err(_) => counters.refuse(),
        });
        admitted
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        let models = self.models.iter().map(|(name, model)| (name.clone(), model.counters));
        Stats { total: self.total, models: models.collect() }
    }

    /// Reads a request, unless it is one that fails anyway.
    fn call(&self, nth: u64, path: &str, body: &[u8]) -> Result<Call, Rejection> {
        match self.settings.faults.iter().find(|fault| fault.hits(nth)) {
            Some(fault) => Err(fault.failure.into()),
            None => Call::parse(path, body),
        }
    }

    fn answer(&mut self, now_ns: u64, call: &Call, mut draws: Draws, id: &str) -> Reply {
        let drawn = draws.output(self.settings.output);
        let wanted = call.asked_output.unwrap_or(drawn);
        let output = call.output(wanted);
        let usage = Usage { input: input_tokens(call), output: output * call.choices };
        let charged = self.settings.charge.tokens(call, usage);
        let admitted = self.admit(now_ns, &call.model, 1, charged);
        let now = self.now;
        let mut headers = headers::limits(&mut self.model(&call.model).account, now);
        if let Err(refusal) = admitted {
            headers.extend(refusal.retry_after.into_iter().flat_map(headers::retry));
            return Reply::rejected(&Rejection::from(&refusal), headers);
        }
        self.count(&call.model, |counters| counters.add(usage));
        let created = now / 1_000_000_000;
        let answer = Answer { call, id, created, output, cut: output < wanted, usage };
        let latency = draws.latency(self.settings.latency);
        Reply { status: 200, headers, body: answer.body(), latency, charged, usage }
            .with_content_type()
    }

    fn model(&mut self, name: &str) -> &mut Model {
        if !self.models.contains_key(name) {
            let account = Account::new(&self.settings);
            self.models.insert(name.to_owned(), Model { account, counters: Counters::default() });
        }
        self.models.get_mut(name).expect("the model was just inserted")
    }

    /// Counts for a model, and in all.
    fn count(&mut self, model: &str, count: impl Fn(&mut Counters)) {
        count(&mut self.model(model).counters);
        count(&mut self.total);
    }
}
