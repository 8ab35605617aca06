use std::collections::VecDeque;
use std::task::Waker;

use super::turn::{Amounts, GateTerms, Kind, Service, Turn};

/// The waiters of one flow in order of arrival, and the service that the flow has had.
#[derive(Debug)]
pub(super) struct Flow {
    /// The virtual time at which its next request starts: service so far, divided by the weight.
    pub(super) start: u128,
    weight: u32,
    waiters: VecDeque<Waiter>,
    gates: usize,
    /// The sums of the amounts of its requests.
    pub(super) amounts: Amounts<u128>,
}

#[derive(Debug)]
pub(super) struct Waiter {
    arrival: u64,
    /// Set for a gate.
    gate: Option<Box<GateTerms>>,
    pub(super) waker: Waker,
}

impl Flow {
    pub(super) fn new(start: u128) -> Self {
        Self { start, weight: 1, waiters: VecDeque::new(), gates: 0, amounts: [0; 4] }
    }

    /// Returns the number of arrival of the first waiter.
    pub(super) fn first(&self) -> Option<u64> {
        self.waiters.front().map(|waiter| waiter.arrival)
    }

    /// Returns the first request.
    pub(super) fn first_request(&self) -> Option<u64> {
        if self.gates == self.waiters.len() {
            return None;
        }
        let request = self.waiters.iter().find(|waiter| waiter.gate.is_none());
        request.map(|waiter| waiter.arrival)
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter()
    }

    /// Inserts a waiter by its number of arrival, or replaces its terms. Returns whether it wasn't there.
    pub(super) fn enter(
        &mut self,
        turn: Turn,
        service: Service,
        gate: Option<GateTerms>,
        waker: &Waker,
    ) -> bool {
        self.weight = service.weight.max(1);
        let gate = gate.map(Box::new);
        match self.position(turn.arrival) {
            Ok(at) => {
                self.waiters[at].gate = gate;
                false
            }
            Err(at) => {
                let arrival = turn.arrival;
                self.gates += usize::from(gate.is_some());
                self.waiters.insert(at, Waiter { arrival, gate, waker: waker.clone() });
                for (sum, amount) in self.amounts.iter_mut().zip(service.amounts) {
                    *sum += u128::from(amount);
                }
                true
            }
        }
    }

    pub(super) fn waiter_mut(&mut self, arrival: u64) -> Option<&mut Waiter> {
        let at = self.position(arrival).ok()?;
        self.waiters.get_mut(at)
    }

    pub(super) fn waiter(&self, arrival: u64) -> Option<&Waiter> {
        self.waiters.get(self.position(arrival).ok()?)
    }

    /// Removes a waiter, which entered with these amounts.
    pub(super) fn remove(&mut self, turn: Turn, amounts: Amounts<u64>) -> Option<Waiter> {
        let at = self.position(turn.arrival).ok()?;
        // A gate and the call that takes its turn have the same number.
        if self.waiters[at].kind() != turn.kind {
            return None;
        }
        let removed = self.waiters.remove(at)?;
        self.gates -= usize::from(removed.gate.is_some());
        for (sum, amount) in self.amounts.iter_mut().zip(amounts) {
            *sum = sum.saturating_sub(u128::from(amount));
        }
        Some(removed)
    }

    /// Returns whether a waiter with this number of arrival goes behind all others.
    pub(super) fn is_last(&self, arrival: u64) -> bool {
        self.waiters.back().is_some_and(|last| last.arrival < arrival)
    }

    /// Returns the number of waiters before this one.
    pub(super) fn rank(&self, arrival: u64) -> Option<usize> {
        self.position(arrival).ok()
    }

    /// Adds the service of a request that was admitted.
    pub(super) fn charge(&mut self, service: Service) {
        self.weight = service.weight.max(1);
        let unit = u128::from(service.unit.max(1)) << FRACTION_BITS;
        self.start = self.start.saturating_add(unit / u128::from(self.weight));
    }

    fn position(&self, arrival: u64) -> Result<usize, usize> {
        // Nearly every waiter enters at the end and leaves at the front.
        match (self.waiters.front(), self.waiters.back()) {
            (_, Some(last)) if last.arrival < arrival => Err(self.waiters.len()),
            (Some(first), _) if first.arrival == arrival => Ok(0),
            _ => self.waiters.binary_search_by_key(&arrival, |waiter| waiter.arrival),
        }
    }
}

impl Waiter {
    pub(super) fn arrival(&self) -> u64 {
        self.arrival
    }

    pub(super) fn gate_terms(&self) -> Option<&GateTerms> {
        self.gate.as_deref()
    }

    pub(super) fn kind(&self) -> Kind {
        if self.gate.is_some() { Kind::Gate } else { Kind::Request }
    }
}

/// The fraction of a nanosecond of virtual time.
const FRACTION_BITS: u32 = 20;
