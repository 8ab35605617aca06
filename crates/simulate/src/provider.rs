//! The provider as a pure state machine.

use std::collections::BTreeMap;
use std::time::Duration;

use super::account::Account;
use super::bill::{Bill, Claim};
use super::cache::Cache;
use super::format::{self, Call, Format, Made};
use super::openai::OpenAi;
use super::refusal::Refusal;
use super::rejection::Rejection;
use super::reply::Reply;
use super::settings::Settings;
use super::sizes::{Draws, id};
use super::stats::{Counters, Stats};
use crate::usage::Usage;

/// A provider that enforces its limits, in virtual time.
///
/// The same settings and the same calls give the same answers. Time is in nanoseconds since the Unix
/// epoch, which only dates and Gemini's days depend on; a time before the last one counts as the
/// last one.
#[derive(Debug)]
pub struct Provider {
    settings: Settings,
    /// By the name of their format, and their own.
    models: BTreeMap<&'static str, BTreeMap<String, Model>>,
    total: Counters,
    now: u64,
}

#[derive(Debug)]
struct Model {
    account: Account,
    cache: Cache,
    counters: Counters,
}

impl Provider {
    /// A provider that nobody has called yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, models: BTreeMap::new(), total: Counters::default(), now: 0 }
    }

    /// Answers a POST of `body` to `path` with its query, received whole at `now_ns`. Whose format
    /// it is, the path tells; `/v1` may be left out.
    ///
    /// It is charged at this moment, and what is charged as the answer is made until its latency is
    /// over. What is refused or malformed takes nothing.
    pub fn receive(&mut self, now_ns: u64, path: &str, body: &[u8]) -> Reply {
        let nth = self.total.received + 1;
        let id = id(self.settings.seed, nth);
        let format = format::at(path);
        let answered = match self.read(format, nth, path, body) {
            Ok(call) => {
                self.answer(now_ns, format, &*call, Draws::new(self.settings.seed, body), &id)
            }
            Err(rejection) => {
                self.total.fail();
                Err(rejection)
            }
        };
        let rejected = |rejection| Reply::rejected(format, path, &rejection, &id);
        let mut reply = answered.unwrap_or_else(rejected);
        reply.headers.extend(format.identity(&id));
        reply
    }

    /// Takes `requests` and `tokens` from the limits of an OpenAI model at `now_ns`: all or nothing.
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
        let requests = Claim::at_once(requests);
        let bill = Bill { requests, tokens: Claim::at_once(tokens), ..Bill::default() };
        self.now = self.now.max(now_ns);
        self.take(&OpenAi, model, &bill, Duration::ZERO)
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        let mut models: BTreeMap<String, Counters> = BTreeMap::new();
        for (name, model) in self.models.values().flatten() {
            models.entry(name.clone()).or_default().join(model.counters);
        }
        Stats { total: self.total, models }
    }

    /// Reads a request, unless it is one that fails anyway.
    fn read(
        &self,
        format: &dyn Format,
        nth: u64,
        path: &str,
        body: &[u8],
    ) -> Result<Box<dyn Call>, Rejection> {
        match self.settings.faults.iter().find(|fault| fault.hits(nth)) {
            Some(fault) => Err(format.failure(fault.failure)),
            None => format.read(path, body),
        }
    }

    fn answer(
        &mut self,
        now_ns: u64,
        format: &dyn Format,
        call: &dyn Call,
        mut draws: Draws,
        id: &str,
    ) -> Result<Reply, Rejection> {
        self.now = self.now.max(now_ns);
        let now = self.now;
        let drawn = draws.output(self.settings.output);
        let wanted = call.asked_output().unwrap_or(drawn);
        let output = call.output(wanted);
        let latency = draws.latency(self.settings.latency);
        let model = self.model(format, call.model());
        let (cache_read, cache_write) = model.cache.look(now, call.prefixes());
        let usage =
            Usage { input: call.input(), output: output * call.choices(), cache_read, cache_write };
        let bill = call.bill(&usage, self.settings.charge);
        let taken = self.take(format, call.model(), &bill, latency);
        let mut headers = format.limits(&mut self.model(format, call.model()).account, now);
        if let Err(refusal) = taken {
            let mut rejection = format.refusal(&refusal);
            headers.append(&mut rejection.headers);
            return Err(rejection.with_headers(headers));
        }
        self.model(format, call.model()).cache.keep(now, call.prefixes());
        self.count(format, call.model(), |counters| counters.add(usage));
        let at = Duration::from_nanos(now);
        let made = Made { id, at, output, cut: output < wanted, usage };
        let (content_type, body) = call.write(&made);
        headers.insert(0, ("content-type", content_type.to_owned()));
        Ok(Reply { status: 200, headers, body, latency, charged: bill.tokens.total(), usage })
    }

    /// Takes a bill from the limits of a model, all or nothing, and counts it.
    fn take(
        &mut self,
        format: &dyn Format,
        name: &str,
        bill: &Bill,
        lasts: Duration,
    ) -> Result<(), Refusal> {
        let now = self.now;
        let taken = self.model(format, name).account.admit(now, name, bill, lasts);
        self.count(format, name, |counters| match taken {
            Ok(()) => counters.admit(bill.tokens.total()),
            Err(_) => counters.refuse(),
        });
        taken
    }

    fn model(&mut self, format: &dyn Format, name: &str) -> &mut Model {
        let models = self.models.entry(format.name()).or_default();
        if !models.contains_key(name) {
            let account = Account::new(format, &self.settings);
            let model = Model { account, cache: Cache::default(), counters: Counters::default() };
            models.insert(name.to_owned(), model);
        }
        models.get_mut(name).expect("the model was just inserted")
    }

    /// Counts for a model, and in all.
    fn count(&mut self, format: &dyn Format, model: &str, count: impl Fn(&mut Counters)) {
        count(&mut self.model(format, model).counters);
        count(&mut self.total);
    }
}
