//! The limits of one model, taken all or none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::format::Format;
use super::meter::Meter;
use super::refusal::{LimitKind, Refusal};
use super::request_charge::{LimitCharge, RequestCharge};
use super::settings::Settings;

/// The meters of one model, and what answers on their way will still take from them.
#[derive(Debug)]
pub(super) struct ModelLimits {
    limits: Vec<Limit>,
    /// When, of which gate, how much; earliest first.
    pending: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

/// One limit of a model, as its headers state it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitStatus {
    pub(super) limit: u64,
    pub(super) remaining: u64,
    /// Nanoseconds until nothing is used any more.
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

    /// Takes a bill from every limit, or, where one falls short, nothing from any.
    ///
    /// What is taken as the answer is made is taken in even steps until `duration` from now. Of several
    /// limits that fall short the one with the longest wait is named.
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

    /// How a limit stands now; `None` where the model has no such limit.
    pub(super) fn status(&mut self, now: u64, kind: LimitKind) -> Option<LimitStatus> {
        self.settle(now);
        let limit = self.limits.iter_mut().find(|limit| limit.kind == kind)?;
        Some(LimitStatus {
            limit: limit.amount,
            remaining: limit.meter.remaining(now),
            reset: limit.meter.time_until_full(now),
        })
    }

    /// Takes what was made until now.
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

/// When how much of `amount` is made, if it takes so long from now.
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

/// An answer is taken in no more steps than this, however long it is.
const MAX_STEPS: u64 = 64;
