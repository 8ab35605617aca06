//! The provider as a pure state machine.

use std::collections::BTreeMap;
use std::time::Duration;

use super::api_error::ApiError;
use super::cache::Cache;
use super::exceeded_limit::ExceededLimit;
use super::fault::{Fault, FaultKind};
use super::format::{Format, Generated, ParsedRequest};
use super::formats;
use super::limit_set::LimitSet;
use super::openai::OpenAi;
use super::random::{RequestRng, id};
use super::reply::{Headers, SimulatedReply};
use super::request_charge::{LimitCharge, RequestCharge};
use super::retry_after::RetryAfter;
use super::settings::Settings;
use super::stats::{Counters, Stats};
use crate::text;
use crate::usage::SimulatedUsage;

/// A provider that enforces limits in virtual time.
///
/// The same settings and calls give the same responses. Times are nanoseconds since the Unix epoch,
/// which matters only for dates and Gemini's days; a time before the previous one counts as the
/// previous one.
#[derive(Debug)]
pub struct Provider {
    settings: Settings,
    /// The models, by the name of their format and their own.
    models: BTreeMap<&'static str, BTreeMap<String, Model>>,
    /// The limits of all models of a format together, by its name.
    projects: BTreeMap<&'static str, LimitSet>,
    total: Counters,
    now: u64,
    /// The time of the first request.
    started_at: Option<u64>,
}

#[derive(Debug)]
struct Model {
    limits: LimitSet,
    cache: Cache,
    counters: Counters,
}

impl Provider {
    /// Creates a provider.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            models: BTreeMap::new(),
            projects: BTreeMap::new(),
            total: Counters::default(),
            now: 0,
            started_at: None,
        }
    }

    /// Handles a POST of `body` to `path` with its query, received in full at `now_ns`. The path
    /// selects the format; `/v1` is optional.
    ///
    /// The request is charged now, and amounts charged during generation until the end of its
    /// latency. Refused and malformed requests are not charged.
    pub fn receive(&mut self, now_ns: u64, path: &str, body: &[u8]) -> SimulatedReply {
        self.advance(now_ns);
        let nth = self.total.received + 1;
        let id = id(self.settings.seed, nth);
        let format = formats::for_path(path);
        let result = match self.read(format, nth, path, body) {
            Ok(request) => {
                let rng = RequestRng::new(self.settings.seed, body);
                self.respond(format, &*request, rng, &id)
            }
            Err(api_error) => {
                self.total.fail();
                Err(api_error)
            }
        };
        let from_error = |api_error| {
            let mut rng = RequestRng::new(self.settings.seed, body);
            SimulatedReply {
                latency: rng.latency(self.settings.error_latency),
                ..format.error_reply(path, &api_error, &id)
            }
        };
        let mut reply = result.unwrap_or_else(from_error);
        reply.headers.extend(format.identity(&id));
        reply
    }

    /// Charges `requests` and `tokens` to the limits of an OpenAI model at `now_ns`, to all or
    /// none.
    ///
    /// This is [`receive`](Self::receive) without bytes, for traces.
    ///
    /// # Errors
    ///
    /// Returns [`ExceededLimit`] if a limit has too little; no limit is charged.
    pub fn admit(
        &mut self,
        now_ns: u64,
        model: &str,
        requests: u64,
        tokens: u64,
    ) -> Result<(), ExceededLimit> {
        let requests = LimitCharge::on_arrival(requests);
        let request_charge = RequestCharge {
            requests,
            tokens: LimitCharge::on_arrival(tokens),
            ..RequestCharge::default()
        };
        self.advance(now_ns);
        self.take(&OpenAi, model, &request_charge, Duration::ZERO)
    }

    /// Returns the time since the first request, at the latest one.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now - self.started_at.unwrap_or(self.now))
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        let mut models: BTreeMap<String, Counters> = BTreeMap::new();
        for (name, model) in self.models.values().flatten() {
            models.entry(name.clone()).or_default().join(model.counters);
        }
        Stats { total: self.total, models }
    }

    /// Parses a request, or returns the simulated failure that applies to it.
    fn read(
        &self,
        format: &dyn Format,
        nth: u64,
        path: &str,
        body: &[u8],
    ) -> Result<Box<dyn ParsedRequest>, ApiError> {
        let Settings { faults, seed, .. } = &self.settings;
        let applies = |fault: &&Fault| fault.applies_to(*seed, nth, self.elapsed(), body);
        let Some(fault) = faults.iter().find(applies) else { return format.read(path, body) };
        let request = format.read(path, body);
        let limit = request.iter().find_map(|request| fault.kind.limit(request.model()));
        match (fault.kind, limit) {
            (_, None) => Err(format.failure(fault.kind)),
            (FaultKind::TooLarge, Some(limit)) => Err(format.too_large(&limit)),
            (_, Some(limit)) => {
                let (api_error, headers) = self.refusal(format, &limit);
                Err(api_error.with_headers(headers))
            }
        }
    }

    fn respond(
        &mut self,
        format: &dyn Format,
        request: &dyn ParsedRequest,
        mut rng: RequestRng,
        id: &str,
    ) -> Result<SimulatedReply, ApiError> {
        let now = self.now;
        let random_output = rng.output(self.settings.output);
        let structured = request.structured();
        let desired = structured.map(text::tokens).or_else(|| request.requested_output());
        let desired = desired.unwrap_or(random_output);
        let output = request.output(desired);
        let latency = rng.latency(self.settings.latency);
        let model = self.model(format, request.model());
        let (cache_read, cache_write) = model.cache.lookup(now, request.prefixes());
        let usage = SimulatedUsage {
            input: request.input(),
            output: output * request.choices(),
            cache_read,
            cache_write,
        };
        let mut request_charge = request.request_charge(&usage, self.settings.charge);
        if let Some(spend) = &self.settings.spend
            && request_charge.requests.required > 0
        {
            let cost = spend.cost(format.name(), request.model(), &usage);
            let cost = cost.ok_or_else(|| format.unknown_model(request.model()));
            request_charge.spend =
                LimitCharge::on_arrival(cost.inspect_err(|_| self.total.fail())?);
        }
        let taken = self.take(format, request.model(), &request_charge, latency);
        let mut headers = self.limit_headers(format, request.model());
        if let Err(refusal) = taken {
            let (api_error, mut retry_headers) = self.refusal(format, &refusal);
            headers.append(&mut retry_headers);
            return Err(api_error.with_headers(headers));
        }
        self.model(format, request.model()).cache.insert(now, request.prefixes());
        self.count(format, request.model(), |counters| counters.add(usage));
        let at = Duration::from_nanos(now);
        let text = structured.map_or_else(|| text::text(output), |whole| text::cut(whole, output));
        let truncated = output < desired;
        let generated = Generated { id, at, output, text: &text, truncated, usage };
        let (content_type, body) = request.write(&generated);
        headers.insert(0, ("content-type", content_type.to_owned()));
        Ok(SimulatedReply {
            status: 200,
            headers,
            body,
            latency,
            charged: request_charge.tokens.total(),
            spent: request_charge.spend.total(),
            usage,
        })
    }

    /// Returns the headers that state the limits of a model; none if the settings omit them.
    fn limit_headers(&mut self, format: &dyn Format, model: &str) -> Headers {
        if !self.settings.limit_headers {
            return Headers::new();
        }
        let now = self.now;
        let limits = self.model(format, model).limits.statuses(now);
        format.limits(&limits, now)
    }

    /// Returns the error of a refusal, and the headers with its delay.
    fn refusal(&self, format: &dyn Format, refusal: &ExceededLimit) -> (ApiError, Headers) {
        let delay = self.settings.retry_after.delay(refusal);
        let api_error = match self.settings.named_refusals {
            true => format.refusal(refusal, delay),
            false => format.unnamed_refusal(),
        };
        let headers = delay.map(|delay| self.retry_headers(format, delay));
        (api_error, headers.unwrap_or_default())
    }

    /// Returns the headers that state a delay.
    fn retry_headers(&self, format: &dyn Format, delay: Duration) -> Headers {
        match self.settings.retry_after {
            RetryAfter::Milliseconds => {
                let millis = delay.as_nanos().div_ceil(1_000_000);
                vec![("retry-after-ms", millis.to_string())]
            }
            _ => format.retry_headers(delay),
        }
    }

    /// Charges a request to the limits of its model and of the project, to all or none, and counts
    /// it. If several limits have too little, the error names the one with the longest wait.
    fn take(
        &mut self,
        format: &dyn Format,
        name: &str,
        request_charge: &RequestCharge,
        duration: Duration,
    ) -> Result<(), ExceededLimit> {
        let now = self.now;
        let of_model = self.model(format, name).limits.refusal(now, name, request_charge);
        let of_project = self.project(format).refusal(now, name, request_charge);
        if let Some(refusal) =
            of_model.into_iter().chain(of_project).max_by_key(ExceededLimit::wait)
        {
            self.count(format, name, Counters::refuse);
            return Err(refusal);
        }
        self.model(format, name).limits.charge(now, request_charge, duration);
        self.project(format).charge(now, request_charge, duration);
        self.count(format, name, |counters| counters.admit(request_charge));
        Ok(())
    }

    fn project(&mut self, format: &dyn Format) -> &mut LimitSet {
        let started_at = self.started_at.unwrap_or(self.now);
        (self.projects.entry(format.name()))
            .or_insert_with(|| LimitSet::of_project(format, &self.settings, started_at))
    }

    fn model(&mut self, format: &dyn Format, name: &str) -> &mut Model {
        let models = self.models.entry(format.name()).or_default();
        if !models.contains_key(name) {
            let started_at = self.started_at.unwrap_or(self.now);
            let limits = LimitSet::of_model(format, &self.settings, started_at);
            let model = Model { limits, cache: Cache::default(), counters: Counters::default() };
            models.insert(name.to_owned(), model);
        }
        models.get_mut(name).expect("the model was just inserted")
    }

    fn advance(&mut self, now_ns: u64) {
        self.now = self.now.max(now_ns);
        self.started_at.get_or_insert(self.now);
    }

    /// Updates the counters of a model and the total.
    fn count(&mut self, format: &dyn Format, model: &str, count: impl Fn(&mut Counters)) {
        count(&mut self.model(format, model).counters);
        count(&mut self.total);
    }
}
