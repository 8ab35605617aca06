//! The limits of one model, taken all or none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::bill::{Bill, Claim};
use super::format::Format;
use super::meter::Meter;
use super::refusal::{LimitKind, Refusal};
use super::settings::Settings;

/// The meters of one model, and what answers on their way will still take from them.
#[derive(Debug)]
pub(super) struct Account {
    gates: Vec<Gate>,
    /// When, of which gate, how much; earliest first.
    due: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

/// One limit of a model, as its headers state it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) limit: u64,
    pub(super) remaining: u64,
    /// Nanoseconds until nothing is used any more.
    pub(super) reset: u64,
}

impl Account {
    pub(super) fn new(format: &dyn Format, settings: &Settings) -> Self {
        let limited = (format.kinds().iter())
            .filter_map(|kind| Some((*kind, settings.amount(*kind).filter(|n| *n > 0)?)));
        let gates = limited.map(|(kind, amount)| Gate {
            kind,
            amount,
            capacity: settings.capacity(kind, amount),
            meter: format.meter(kind, amount, settings),
        });
        Self { gates: gates.collect(), due: BinaryHeap::new() }
    }

    /// Takes a bill from every limit, or, where one falls short, nothing from any.
    ///
    /// What is taken as the answer is made is taken in even steps until `lasts` from now. Of several
    /// limits that fall short the one with the longest wait is named.
    pub(super) fn admit(
        &mut self,
        now: u64,
        model: &str,
        bill: &Bill,
        lasts: Duration,
    ) -> Result<(), Refusal> {
        self.settle(now);
        let longest = (self.gates.iter_mut())
            .filter_map(|gate| gate.refusal(now, model, bill.claim(gate.kind)))
            .max_by_key(|refusal| refusal.retry_after.unwrap_or(Duration::MAX));
        if let Some(refusal) = longest {
            return Err(refusal);
        }
        for (number, gate) in self.gates.iter_mut().enumerate() {
            let claim = bill.claim(gate.kind);
            gate.meter.take(now, claim.taken);
            self.due.extend(steps(now, lasts, claim.made).map(|(at, n)| Reverse((at, number, n))));
        }
        self.settle(now);
        Ok(())
    }

    /// How a limit stands now; `None` where the model has no such limit.
    pub(super) fn standing(&mut self, now: u64, kind: LimitKind) -> Option<Standing> {
        self.settle(now);
        let gate = self.gates.iter_mut().find(|gate| gate.kind == kind)?;
        Some(Standing {
            limit: gate.amount,
            remaining: gate.meter.remaining(now),
            reset: gate.meter.full_in(now),
        })
    }

    /// Takes what was made until now.
    fn settle(&mut self, now: u64) {
        while let Some(Reverse((at, number, amount))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            self.gates[number].meter.take(at, amount);
        }
    }
}

/// One limit and its meter.
#[derive(Debug)]
struct Gate {
    kind: LimitKind,
    amount: u64,
    capacity: u64,
    meter: Box<dyn Meter>,
}

impl Gate {
    fn refusal(&mut self, now: u64, model: &str, claim: Claim) -> Option<Refusal> {
        if claim.room == 0 {
            return None;
        }
        let wait = self.meter.wait(now, claim.room);
        (wait != Some(0)).then(|| Refusal {
            model: model.to_owned(),
            kind: self.kind,
            limit: self.amount,
            used: self.capacity.saturating_sub(self.meter.remaining(now)),
            requested: claim.room,
            retry_after: wait.map(Duration::from_nanos),
        })
    }
}

/// When how much of `amount` is made, if it takes so long from now.
fn steps(now: u64, lasts: Duration, amount: u64) -> impl Iterator<Item = (u64, u64)> {
    let lasts = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
    let count = if lasts == 0 { amount.min(1) } else { amount.min(MOST_STEPS) };
    let part = move |whole: u64, step: u64| {
        u64::try_from(u128::from(whole) * u128::from(step) / u128::from(count)).unwrap_or(whole)
    };
    (1..=count).map(move |step| {
        let made = part(amount, step) - part(amount, step - 1);
        (now.saturating_add(part(lasts, step)), made)
    })
}

/// An answer is taken in no more steps than this, however long it is.
const MOST_STEPS: u64 = 64;
