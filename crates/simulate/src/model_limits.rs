//! The limits of one model, charged atomically.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::format::Format;
use super::meter::Meter;
use super::refusal::{LimitKind, Refusal};
use super::request_charge::{LimitCharge, RequestCharge};
use super::settings::Settings;

/// The limits of one model, and the charges of responses in progress.
#[derive(Debug)]
pub(super) struct ModelLimits {
    limits: Vec<Limit>,
    /// Pending charges: time, index of the limit, and amount; earliest first.
    pending: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

/// The state of one limit, as reported in headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitStatus {
    pub(super) limit: u64,
    pub(super) remaining: u64,
    /// Nanoseconds until the limit is unused.
    pub(super) reset: u64,
}

impl ModelLimits {
    pub(super) fn new(format: &dyn Format, settings: &Settings) -> Self {
        let limited = (format.kinds().iter())
            .filter_map(|kind| Some((*kind, settings.amount(*kind).filter(|n| *n > 0)?)));
        let limits = limited.map(|(kind, amount)| Limit {
            kind,
            amount,
            capacity: settings.capacity(kind, amount),
            meter: format.meter(kind, amount, settings),
        });
        Self { limits: limits.collect(), pending: BinaryHeap::new() }
    }

    /// Charges a request to every limit, or to none if one has too little.
    ///
    /// Amounts charged during generation are charged in even steps over `duration`. If several
    /// limits have too little, the error names the one with the longest wait.
    pub(super) fn admit(
        &mut self,
        now: u64,
        model: &str,
        request_charge: &RequestCharge,
        duration: Duration,
    ) -> Result<(), Refusal> {
        self.settle(now);
        let longest = (self.limits.iter_mut())
            .filter_map(|limit| limit.refusal(now, model, request_charge.limit_charge(limit.kind)))
            .max_by_key(|refusal| refusal.retry_after.unwrap_or(Duration::MAX));
        if let Some(refusal) = longest {
            return Err(refusal);
        }
        for (number, limit) in self.limits.iter_mut().enumerate() {
            let limit_charge = request_charge.limit_charge(limit.kind);
            limit.meter.take(now, limit_charge.taken);
            self.pending.extend(
                charge_steps(now, duration, limit_charge.generated)
                    .map(|(at, n)| Reverse((at, number, n))),
            );
        }
        self.settle(now);
        Ok(())
    }

    /// Returns the current state of a limit; `None` if the model has no such limit.
    pub(super) fn status(&mut self, now: u64, kind: LimitKind) -> Option<LimitStatus> {
        self.settle(now);
        let limit = self.limits.iter_mut().find(|limit| limit.kind == kind)?;
        Some(LimitStatus {
            limit: limit.amount,
            remaining: limit.meter.remaining(now),
            reset: limit.meter.time_until_full(now),
        })
    }

    /// Charges what was generated until now.
    fn settle(&mut self, now: u64) {
        while let Some(Reverse((at, number, amount))) = self.pending.peek().copied()
            && at <= now
        {
            self.pending.pop();
            self.limits[number].meter.take(at, amount);
        }
    }
}

/// One limit and its meter.
#[derive(Debug)]
struct Limit {
    kind: LimitKind,
    amount: u64,
    capacity: u64,
    meter: Box<dyn Meter>,
}

impl Limit {
    fn refusal(&mut self, now: u64, model: &str, limit_charge: LimitCharge) -> Option<Refusal> {
        if limit_charge.required == 0 {
            return None;
        }
        let wait = self.meter.wait(now, limit_charge.required);
        (wait != Some(0)).then(|| Refusal {
            model: model.to_owned(),
            kind: self.kind,
            limit: self.amount,
            used: self.capacity.saturating_sub(self.meter.remaining(now)),
            requested: limit_charge.required,
            retry_after: wait.map(Duration::from_nanos),
        })
    }
}

/// Returns the times and amounts in which `amount` is generated over `duration`.
fn charge_steps(now: u64, duration: Duration, amount: u64) -> impl Iterator<Item = (u64, u64)> {
    let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let count = if duration == 0 { amount.min(1) } else { amount.min(MAX_STEPS) };
    let part = move |whole: u64, step: u64| {
        u64::try_from(u128::from(whole) * u128::from(step) / u128::from(count)).unwrap_or(whole)
    };
    (1..=count).map(move |step| {
        let generated = part(amount, step) - part(amount, step - 1);
        (now.saturating_add(part(duration, step)), generated)
    })
}

/// The maximum number of charges of one response.
const MAX_STEPS: u64 = 64;
