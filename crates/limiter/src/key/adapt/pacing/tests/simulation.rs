//! Clients with a controller each, and a provider, in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::super::{Controller, RateRefusal};
use super::configured::ConfiguredBucket;
use super::provider::ProviderLimit;
use super::random::Random;
use super::scenario::{Outcome, Scenario, Steady};
use crate::engine::Wait;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

#[derive(Debug, Clone)]
struct Request {
    cost: Cost,
    real: Vec<f64>,
    sent_at: f64,
    /// The number of times it was refused by chance.
    strays: u32,
}

#[derive(Debug)]
enum What {
    Wake,
    Arrive(u32),
    Reach(Request),
    /// The provider has answered.
    Answer,
    Accept(Request),
    Refuse(Request, Option<Duration>, Option<Dimension>),
    /// A request that waited alone is sent again.
    Again(Request),
    Overload(Request),
}

struct Event {
    at: f64,
    number: u64,
    client: usize,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.total_cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

struct Client {
    controller: Controller,
    queue: VecDeque<Request>,
    left: Option<u64>,
    wake: f64,
    in_flight: u32,
    buckets: Vec<ConfiguredBucket>,
    accepted: u64,
}

/// Runs a scenario.
pub(super) fn run(scenario: &Scenario) -> Outcome {
    Run::new(scenario).run()
}

struct Run<'a> {
    scenario: &'a Scenario,
    limits: Vec<(Dimension, ProviderLimit)>,
    random: Random,
    events: BinaryHeap<Reverse<Event>>,
    number: u64,
    clients: Vec<Client>,
    busy: u32,
    /// The requests that have reached the provider.
    reached: u64,
    done: Vec<f64>,
    /// The refusals, events and used amounts at the end of the warm-up.
    warm: Option<(u64, u64, Vec<f64>)>,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let client = |_| Client {
            controller: Controller::new(scenario.rates(), time(0.0)),
            queue: VecDeque::new(),
            left: (!scenario.arrivals.is_empty()).then_some(0),
            wake: f64::INFINITY,
            in_flight: 0,
            buckets: scenario.rates().map(ConfiguredBucket::new).collect(),
            accepted: 0,
        };
        Self {
            scenario,
            limits: scenario.limits.clone(),
            random: Random::new(scenario.seed),
            events: BinaryHeap::new(),
            number: 0,
            clients: (0..scenario.processes).map(client).collect(),
            busy: 0,
            reached: 0,
            done: vec![0.0; scenario.limits.len()],
            warm: None,
            outcome: Outcome::default(),
        }
    }

    fn run(mut self) -> Outcome {
        for client in 0..self.clients.len() {
            let at = self.scenario.stagger * client as f64;
            self.clients[client].wake = at;
            self.push(at, client, What::Wake);
        }
        for (at, requests) in self.scenario.arrivals.clone() {
            self.push(at, 0, What::Arrive(requests));
        }
        while let Some(Reverse(event)) = self.events.pop() {
            if event.at > self.scenario.seconds {
                break;
            }
            if self.warm.is_none() && event.at >= self.scenario.warm_up {
                self.warm = Some((self.outcome.refusals, self.events_of_all(), self.done.clone()));
            }
            self.handle(event);
        }
        self.finish()
    }

    fn handle(&mut self, event: Event) {
        let Event { at, client, what, .. } = event;
        let now = time(at);
        let state = &mut self.clients[client];
        match what {
            What::Arrive(requests) => {
                state.left = state.left.map(|left| left + u64::from(requests));
            }
            What::Wake if at != state.wake => return,
            What::Wake => state.wake = f64::INFINITY,
            What::Reach(request) => return self.reach(at, client, request),
            What::Answer => {
                self.busy -= 1;
                return;
            }
            What::Accept(request) => {
                state.in_flight -= 1;
                state.controller.accepted(time(request.sent_at), now);
                state.controller.ended(time(request.sent_at));
                self.outcome.end = at;
            }
            What::Refuse(request, retry_after, dimension) => {
                state.in_flight -= 1;
                let refusal = RateRefusal {
                    sent_at: time(request.sent_at),
                    cost: &request.cost,
                    retry_after,
                    dimension: dimension.as_ref(),
                };
                let reaction = state.controller.refused(&refusal, now);
                state.controller.ended(time(request.sent_at));
                if reaction.is_chance {
                    let backoff = 0.5 * 2_f64.powi(request.strays.min(5) as i32);
                    let stated = retry_after.map_or(0.0, |after| after.as_secs_f64().min(5.0));
                    let strays = request.strays + 1;
                    self.push(
                        at + backoff.max(stated),
                        client,
                        What::Again(Request { strays, ..request }),
                    );
                } else {
                    state.queue.push_front(request);
                }
            }
            What::Again(request) => state.queue.push_front(request),
            What::Overload(request) => {
                state.in_flight -= 1;
                self.outcome.overloads += 1;
                state.controller.set_aside(time(request.sent_at), &request.cost);
                state.controller.ended(time(request.sent_at));
                state.queue.push_front(request);
            }
        }
        self.send(at, client);
    }

    /// Decides about a request that reaches the provider.
    fn reach(&mut self, at: f64, client: usize, request: Request) {
        let scenario = self.scenario;
        if scenario.storm.0 <= at && at < scenario.storm.1 {
            return self.push(at + scenario.refusal, client, What::Overload(request));
        }
        let chance = scenario.chance;
        self.reached += 1;
        let is_exhausted = scenario.is_half_exhausted && self.reached.is_multiple_of(2);
        if is_exhausted || chance.share > 0.0 && self.random.part() < chance.at(at) {
            self.outcome.refusals += 1;
            let delay = scenario.refusal * self.random.between(0.8, 1.2);
            let retry_after = chance.retry_after.map(Duration::from_secs);
            let named = chance.is_named.then(|| scenario.limits[0].0.clone());
            let read_at = scenario.read_at(at + delay);
            return self.push(read_at, client, What::Refuse(request, retry_after, named));
        }
        let mut binding: (f64, Option<Dimension>) = (0.0, None);
        for ((dimension, limit), real) in self.limits.iter_mut().zip(&request.real) {
            let wait = limit.wait(at, *real);
            if wait > binding.0 {
                binding = (wait, Some(dimension.clone()));
            }
        }
        if scenario.concurrency.is_some_and(|most| self.busy >= most) {
            binding = (0.5, Some(Dimension::Concurrency));
        }
        let (wait, dimension) = binding;
        if wait <= 1e-9 {
            for (i, (_, limit)) in self.limits.iter_mut().enumerate() {
                limit.take(at, request.real[i]);
                self.done[i] += request.real[i];
            }
            self.busy += 1;
            self.clients[client].accepted += 1;
            let latency = self.random.between(scenario.latency.0, scenario.latency.1);
            self.push(at + latency, client, What::Answer);
            let read_at = scenario.read_at(at + latency);
            return self.push(read_at, client, What::Accept(request));
        }
        self.outcome.refusals += 1;
        let is_concurrency = dimension == Some(Dimension::Concurrency);
        let retry_after = scenario.retry_after(wait).filter(|_| !is_concurrency);
        let delay = scenario.refusal * self.random.between(0.8, 1.2);
        let named = dimension.filter(|_| scenario.is_named);
        let read_at = scenario.read_at(at + delay);
        self.push(read_at, client, What::Refuse(request, retry_after, named));
    }

    /// Sends what the controller and the configured limits of a client admit.
    fn send(&mut self, at: f64, client: usize) {
        loop {
            if self.clients[client].queue.is_empty() {
                if self.clients[client].left == Some(0) {
                    return;
                }
                let request = self.next_request();
                let state = &mut self.clients[client];
                state.left = state.left.map(|left| left - 1);
                state.queue.push_back(request);
            }
            let state = &mut self.clients[client];
            if state.in_flight >= self.scenario.workers {
                return;
            }
            let cost = &state.queue[0].cost;
            let wait = match state.controller.check(cost, time(at)) {
                Err(blocked) if blocked.wait == Wait::Unknown => return,
                Err(blocked) => {
                    let Wait::At(ready) = blocked.wait else { unreachable!("never {blocked:?}") };
                    seconds(ready) - at
                }
                Ok(()) => 0.0,
            };
            let controller = &state.controller;
            let held =
                state.buckets.iter_mut().filter(|bucket| !controller.replaces(&bucket.dimension));
            let wait = held.map(|bucket| bucket.wait(at, cost)).fold(wait, f64::max);
            if wait > 0.0 {
                // At least a nanosecond, the resolution of timestamps.
                let wake = at + wait.max(2e-9);
                if wake < state.wake - 1e-9 {
                    state.wake = wake;
                    self.push(wake, client, What::Wake);
                }
                return;
            }
            let Some(mut request) = state.queue.pop_front() else { return };
            request.sent_at = at;
            state.controller.sent(&request.cost, time(at));
            state.in_flight += 1;
            for bucket in &mut state.buckets {
                bucket.take(at, &request.cost);
            }
            self.push(at + 0.005, client, What::Reach(request));
        }
    }

    fn next_request(&mut self) -> Request {
        let tokens = self.random.log_normal(7.0, 1.0).clamp(100.0, 8000.0);
        let scenario = self.scenario;
        let mut cost = Cost::new();
        let real = scenario.limits.iter().map(|(dimension, _)| match dimension {
            Dimension::Requests => 1.0,
            _ => tokens,
        });
        let real = real.collect();
        for (dimension, _) in &scenario.limits {
            if *dimension != Dimension::Requests {
                let error = 1.0 + scenario.error * self.random.between(-1.0, 1.0);
                cost.set(dimension, (tokens * error * scenario.bias).max(1.0) as u64);
            }
        }
        Request { cost, real, sent_at: 0.0, strays: 0 }
    }

    fn push(&mut self, at: f64, client: usize, what: What) {
        self.number += 1;
        self.events.push(Reverse(Event { at, number: self.number, client, what }));
    }

    fn events_of_all(&self) -> u64 {
        self.clients.iter().map(|client| client.controller.events()).sum()
    }

    /// Returns the figures after the warm-up.
    fn steady(&self) -> Steady {
        let Some((refusals, events, done)) = &self.warm else { return Steady::default() };
        let scenario = self.scenario;
        let seconds = scenario.seconds - scenario.warm_up;
        let rate = |limit: &ProviderLimit| {
            let of_all = limit.mean_rate(scenario.seconds) * scenario.seconds;
            let before = limit.mean_rate(scenario.warm_up.max(1e-9)) * scenario.warm_up;
            (of_all - before) / seconds
        };
        let used = self
            .limits
            .iter()
            .zip(self.done.iter().zip(done))
            .map(|((_, limit), (all, before))| (all - before) / (rate(limit) * seconds));
        Steady {
            used: used.fold(0.0, f64::max),
            refusals: self.outcome.refusals - refusals,
            events: self.events_of_all() - events,
        }
    }

    fn finish(self) -> Outcome {
        let scenario = self.scenario;
        let end = if scenario.arrivals.is_empty() { scenario.seconds } else { self.outcome.end };
        let accepted: Vec<u64> = self.clients.iter().map(|client| client.accepted).collect();
        let total: u64 = accepted.iter().sum();
        let until = if scenario.demand.is_finite() { scenario.seconds } else { end };
        let used = self
            .limits
            .iter()
            .zip(&self.done)
            .map(|((_, limit), done)| done / limit.allows(until).min(scenario.demand));
        let in_flight = scenario.concurrency.map(|most| {
            let mean = (scenario.latency.0 + scenario.latency.1) / 2.0;
            total as f64 * mean / f64::from(most) / end
        });
        let queued = |client: &Client| {
            client.queue.len() as u64
                + client.left.unwrap_or_default()
                + u64::from(client.in_flight)
        };
        Outcome {
            steady: self.steady(),
            used: used.chain(in_flight).fold(0.0, f64::max),
            accepted: total,
            events: self.events_of_all(),
            shares: accepted.iter().map(|own| *own as f64 / total.max(1) as f64).collect(),
            unanswered: self.clients.iter().map(queued).sum(),
            ..self.outcome
        }
    }
}

/// Returns the time of a run's second.
fn time(seconds: f64) -> Timestamp {
    START + Duration::from_nanos((seconds * 1e9).round() as u64)
}

fn seconds(time: Timestamp) -> f64 {
    (time - START).as_nanos() as f64 / 1e9
}

const START: Timestamp = Timestamp::from_unix_secs(1_700_000_000);
