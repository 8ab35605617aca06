//! The limits of one model, taken all or none.

use std::time::Duration;

use super::meter::{Meter, meter};
use super::refusal::{LimitKind, Refusal};
use super::settings::Settings;

/// The meters of one model.
#[derive(Debug)]
pub(super) struct Account {
    gates: Vec<Gate>,
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
    pub(super) fn new(settings: &Settings) -> Self {
        let limits = [
            (LimitKind::RequestsPerMinute, settings.rpm),
            (LimitKind::TokensPerMinute, settings.tpm),
            (LimitKind::RequestsPerDay, settings.rpd),
        ];
        let limited = limits
            .into_iter()
            .filter_map(|(kind, amount)| Some((kind, amount.filter(|n| *n > 0)?)));
        Self { gates: limited.map(|(kind, amount)| Gate::new(kind, amount, settings)).collect() }
    }

    /// Takes from every limit, or, where one falls short, from none.
    ///
    /// Of several that fall short the one with the longest wait is named.
    pub(super) fn admit(
        &mut self,
        now: u64,
        model: &str,
        requests: u64,
        tokens: u64,
    ) -> Result<(), Refusal> {
        let cost = |kind| if kind == LimitKind::TokensPerMinute { tokens } else { requests };
        let longest = (self.gates.iter_mut())
            .filter_map(|gate| gate.refusal(now, model, cost(gate.kind)))
            .max_by_key(|refusal| refusal.retry_after.unwrap_or(Duration::MAX));
        if let Some(refusal) = longest {
            return Err(refusal);
        }
        for gate in &mut self.gates {
            gate.meter.take(now, cost(gate.kind));
        }
        Ok(())
    }

    /// How a limit stands now; `None` where the model has no such limit.
    pub(super) fn standing(&mut self, now: u64, kind: LimitKind) -> Option<Standing> {
        let gate = self.gates.iter_mut().find(|gate| gate.kind == kind)?;
        Some(Standing {
            limit: gate.amount,
            remaining: gate.meter.remaining(now),
            reset: gate.meter.full_in(now),
        })
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
    fn new(kind: LimitKind, amount: u64, settings: &Settings) -> Self {
        let capacity = settings.capacity(kind, amount);
        let meter = meter(settings.algorithm, amount, kind.window_ns(), capacity);
        Self { kind, amount, capacity, meter }
    }

    fn refusal(&mut self, now: u64, model: &str, requested: u64) -> Option<Refusal> {
        let wait = self.meter.wait(now, requested);
        (wait != Some(0)).then(|| Refusal {
            model: model.to_owned(),
            kind: self.kind,
            limit: self.amount,
            used: self.capacity - self.meter.remaining(now),
            requested,
            retry_after: wait.map(Duration::from_nanos),
        })
    }
}
