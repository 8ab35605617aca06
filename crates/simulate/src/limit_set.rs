//! The limits of one model or project.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::exceeded_limit::{ExceededLimit, LimitKind};
use super::format::Format;
use super::in_flight::InFlight;
use super::limit_status::LimitStatus;
use super::limit_terms::LimitTerms;
use super::meter::Meter;
use super::other_use::OtherProgress;
use super::request_charge::{LimitCharge, RequestCharge};
use super::settings::Settings;
use super::sliding_log::SlidingLog;

/// The limits of one model or project, and the charges of responses in progress.
#[derive(Debug)]
pub(super) struct LimitSet {
    limits: Vec<Limit>,
    in_flight: Option<InFlight>,
    /// The changes of the limits.
    changes: Vec<ChangedTerms>,
    /// Events to come, earliest first.
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// The time of the provider's first request.
    started_at: u64,
}

/// An event at a later time. At the same time, changes come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The change of this number takes effect.
    Change(usize),
    /// The limit of this index is charged for generated output.
    Charge(usize, u64),
    /// Others use the limit of this index.
    OtherUse(usize),
}

/// The limits after a change.
#[derive(Debug)]
struct ChangedTerms {
    terms: Vec<LimitTerms>,
    concurrency: Option<u64>,
}

impl LimitSet {
    /// Creates the unused limits of a model; changes and others count from `started_at`.
    pub(super) fn of_model(format: &dyn Format, settings: &Settings, started_at: u64) -> Self {
        let concurrency = settings.amount(LimitKind::Concurrency);
        Self::new(format, settings, format.kinds(), concurrency, started_at)
    }

    /// Creates the unused limits that all models share.
    pub(super) fn of_project(format: &dyn Format, settings: &Settings, started_at: u64) -> Self {
        Self::new(format, settings, &[LimitKind::Spend], None, started_at)
    }

    fn new(
        format: &dyn Format,
        settings: &Settings,
        kinds: &[LimitKind],
        concurrency: Option<u64>,
        started_at: u64,
    ) -> Self {
        let stated: Vec<(LimitKind, u64)> = (kinds.iter())
            .filter_map(|kind| Some((*kind, settings.amount(*kind).filter(|n| *n > 0)?)))
            .collect();
        let limits = stated.iter().map(|&(kind, amount)| {
            let terms = LimitTerms::new(settings, kind, amount);
            let meter = match kind {
                LimitKind::Spend => Box::new(SlidingLog::new(terms.amount, terms.window)),
                _ => format.meter(kind, terms, settings),
            };
            Limit { kind, terms, meter, others: settings.others.map(OtherProgress::new) }
        });
        let concurrency = concurrency.filter(|limit| *limit > 0);
        let changes = settings.changes.iter().map(|change| ChangedTerms {
            terms: (stated.iter())
                .map(|&(kind, amount)| LimitTerms::new(settings, kind, change.applied_to(amount)))
                .collect(),
            concurrency: concurrency.map(|limit| change.applied_to(limit)),
        });
        let mut limit_set = Self {
            limits: limits.collect(),
            in_flight: concurrency.map(InFlight::new),
            changes: changes.collect(),
            events: BinaryHeap::new(),
            started_at,
        };
        for (number, change) in settings.changes.iter().enumerate() {
            limit_set.schedule(started_at, nanoseconds(change.at), Event::Change(number));
        }
        for (index, limit) in limit_set.limits.iter().enumerate() {
            if limit.others.is_some() {
                let at = started_at.saturating_add(limit.step());
                limit_set.events.push(Reverse((at, Event::OtherUse(index))));
            }
        }
        limit_set
    }

    /// Returns the refusal of a request by the limit with the longest wait; `None` if no limit has
    /// too little.
    pub(super) fn refusal(
        &mut self,
        now: u64,
        model: &str,
        request_charge: &RequestCharge,
    ) -> Option<ExceededLimit> {
        self.advance(now);
        let is_counted = request_charge.requests.required > 0;
        let in_flight = (self.in_flight.as_mut()).filter(|_| is_counted);
        (self.limits.iter_mut())
            .filter_map(|limit| limit.refusal(now, model, request_charge.limit_charge(limit.kind)))
            .chain(in_flight.and_then(|in_flight| in_flight.refusal(now, model)))
            .max_by_key(ExceededLimit::wait)
    }

    /// Charges a request to every limit. Amounts charged during generation are charged in even steps
    /// over `duration`.
    pub(super) fn charge(&mut self, now: u64, request_charge: &RequestCharge, duration: Duration) {
        self.advance(now);
        for (index, limit) in self.limits.iter_mut().enumerate() {
            let limit_charge = request_charge.limit_charge(limit.kind);
            limit.meter.take(now, limit_charge.taken);
            self.events.extend(
                charge_steps(now, duration, limit_charge.generated)
                    .map(|(at, n)| Reverse((at, Event::Charge(index, n)))),
            );
        }
        let is_counted = request_charge.requests.required > 0;
        if let Some(in_flight) = self.in_flight.as_mut().filter(|_| is_counted) {
            in_flight.start(now, duration);
        }
        self.advance(now);
    }

    /// Returns the current state of every limit but that on requests in flight.
    pub(super) fn statuses(&mut self, now: u64) -> Vec<LimitStatus> {
        self.advance(now);
        let statuses = self.limits.iter_mut().map(|limit| LimitStatus {
            kind: limit.kind,
            limit: limit.terms.stated,
            remaining: limit.meter.remaining(now),
            reset: limit.meter.time_until_full(now),
        });
        statuses.collect()
    }

    /// Handles the events until now, in order.
    fn advance(&mut self, now: u64) {
        while let Some(Reverse((at, event))) = self.events.peek().copied()
            && at <= now
        {
            self.events.pop();
            match event {
                Event::Change(number) => self.change(at, number),
                Event::Charge(index, amount) => self.limits[index].meter.take(at, amount),
                Event::OtherUse(index) => self.use_by_others(at, now, index),
            }
        }
    }

    fn change(&mut self, at: u64, number: usize) {
        let ChangedTerms { terms, concurrency } = &self.changes[number];
        for (limit, terms) in self.limits.iter_mut().zip(terms) {
            limit.terms = *terms;
            limit.meter.set_amount(at, terms.amount, terms.capacity);
        }
        if let (Some(in_flight), Some(limit)) = (&mut self.in_flight, concurrency) {
            in_flight.set_limit(*limit);
        }
    }

    /// Takes what others use in the step that ends at `at`, and schedules the next one. Steps before
    /// the last window are skipped, since they no longer count.
    fn use_by_others(&mut self, at: u64, now: u64, index: usize) {
        let limit = &mut self.limits[index];
        let step = limit.step();
        let LimitTerms { amount, window, .. } = limit.terms;
        let Some(others) = &mut limit.others else { return };
        let per_step = amount as f64 * step as f64 / window as f64;
        let units = others.step(Duration::from_nanos(at - self.started_at), per_step);
        limit.meter.take(at, units);
        let outdated = ((now - at) / step).saturating_sub(STEPS_PER_WINDOW);
        self.schedule(at, step.saturating_mul(outdated.max(1)), Event::OtherUse(index));
    }

    /// Schedules an event, unless its time is beyond the last one.
    fn schedule(&mut self, from: u64, delay: u64, event: Event) {
        if let Some(at) = from.checked_add(delay) {
            self.events.push(Reverse((at, event)));
        }
    }
}

/// One limit and its meter.
#[derive(Debug)]
struct Limit {
    kind: LimitKind,
    terms: LimitTerms,
    meter: Box<dyn Meter>,
    others: Option<OtherProgress>,
}

impl Limit {
    fn refusal(
        &mut self,
        now: u64,
        model: &str,
        limit_charge: LimitCharge,
    ) -> Option<ExceededLimit> {
        if limit_charge.required == 0 {
            return None;
        }
        let wait = self.meter.wait(now, limit_charge.required);
        (wait != Some(0)).then(|| ExceededLimit {
            model: model.to_owned(),
            kind: self.kind,
            limit: self.terms.stated,
            used: self.terms.capacity.saturating_sub(self.meter.remaining(now)),
            requested: limit_charge.required,
            retry_after: wait.map(Duration::from_nanos),
        })
    }

    /// Returns the nanoseconds between two uses by others.
    fn step(&self) -> u64 {
        (self.terms.window / STEPS_PER_WINDOW).max(1)
    }
}

/// Returns the times and amounts in which `amount` is generated over `duration`.
fn charge_steps(now: u64, duration: Duration, amount: u64) -> impl Iterator<Item = (u64, u64)> {
    let duration = nanoseconds(duration);
    let count = if duration == 0 { amount.min(1) } else { amount.min(MAX_STEPS) };
    let part = move |whole: u64, step: u64| {
        u64::try_from(u128::from(whole) * u128::from(step) / u128::from(count)).unwrap_or(whole)
    };
    (1..=count).map(move |step| {
        let generated = part(amount, step) - part(amount, step - 1);
        (now.saturating_add(part(duration, step)), generated)
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The maximum number of charges of one response.
const MAX_STEPS: u64 = 64;

/// The steps in which others use a window: every 10 ms of a minute.
const STEPS_PER_WINDOW: u64 = 6_000;
