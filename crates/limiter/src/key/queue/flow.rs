use std::collections::VecDeque;
use std::task::Waker;

use super::contact::Contact;
use super::flow_order::FlowRank;
use super::turn::{Amounts, GateTerms, Kind, NO_AMOUNTS, Service, Turn};
use crate::timestamp::Timestamp;

/// The waiters of one flow in order of arrival, and the service that the flow has had.
///
/// A gate and the call that takes its turn have the same arrival number; the call goes first.
#[derive(Debug)]
pub(super) struct Flow {
    /// The virtual time at which its next request starts: service so far, divided by the weight.
    pub(super) start: u128,
    weight: u32,
    /// The requests, with the amounts that they entered with.
    requests: Waiters<Amounts<u64>>,
    gates: Waiters<Box<GateTerms>>,
    /// The sums of the amounts of its requests.
    pub(super) amounts: Amounts<u128>,
}

/// Waiters of one kind, in order of arrival.
type Waiters<T> = VecDeque<Waiter<T>>;

#[derive(Debug)]
struct Waiter<T> {
    arrival: u64,
    contact: Contact,
    terms: T,
}

impl Flow {
    pub(super) fn new(start: u128) -> Self {
        let (requests, gates) = (Waiters::new(), Waiters::new());
        Self { start, weight: 1, requests, gates, amounts: [0; 4] }
    }

    /// Returns the kind and the arrival number of the first waiter.
    pub(super) fn first(&self) -> Option<(Kind, u64)> {
        let gate = self.gates.front().map(|gate| (Kind::Gate, gate.arrival));
        match (self.first_request(), gate) {
            (Some(request), Some((_, gate))) if request > gate => Some((Kind::Gate, gate)),
            (Some(request), _) => Some((Kind::Request, request)),
            (None, gate) => gate,
        }
    }

    /// Returns the arrival number of the first request.
    pub(super) fn first_request(&self) -> Option<u64> {
        self.requests.front().map(|request| request.arrival)
    }

    /// Returns its rank among the flows, under its identity, if it has waiters.
    pub(super) fn rank(&self, flow: u64) -> Option<FlowRank> {
        self.first().map(|(kind, arrival)| FlowRank { start: self.start, arrival, flow, kind })
    }

    /// Returns all wakers in order of arrival, and whether they are those of gates.
    pub(super) fn wakers(&self) -> impl Iterator<Item = (Kind, &Waker)> {
        let mut requests = self.requests.iter().peekable();
        let mut gates = self.gates.iter().peekable();
        std::iter::from_fn(move || {
            let next_gate = gates.peek().map_or(u64::MAX, |gate| gate.arrival);
            match requests.next_if(|request| request.arrival <= next_gate) {
                Some(request) => Some((Kind::Request, &request.contact.waker)),
                None => gates.next().map(|gate| (Kind::Gate, &gate.contact.waker)),
            }
        })
    }

    /// Inserts a waiter by its arrival number, or replaces the terms of a gate. Returns whether it wasn't there.
    pub(super) fn enter(
        &mut self,
        turn: Turn,
        service: Service,
        gate: Option<GateTerms>,
        contact: Contact,
    ) -> bool {
        self.weight = service.weight.max(1);
        let is_new = match gate {
            Some(terms) => {
                let terms = Box::new(terms);
                let entered = enter(&mut self.gates, turn.arrival, terms, contact);
                entered.map_err(|(old, terms)| *old = terms).is_ok()
            }
            None => enter(&mut self.requests, turn.arrival, service.amounts, contact).is_ok(),
        };
        if is_new {
            for (sum, amount) in self.amounts.iter_mut().zip(service.amounts) {
                *sum += u128::from(amount);
            }
        }
        is_new
    }

    /// Returns the contact of a waiter.
    pub(super) fn contact(&self, turn: Turn) -> Option<&Contact> {
        match turn.kind {
            Kind::Request => get(&self.requests, turn.arrival).map(|request| &request.contact),
            Kind::Gate => get(&self.gates, turn.arrival).map(|gate| &gate.contact),
        }
    }

    pub(super) fn contact_mut(&mut self, turn: Turn) -> Option<&mut Contact> {
        match turn.kind {
            Kind::Request => Some(&mut get_mut(&mut self.requests, turn.arrival)?.contact),
            Kind::Gate => Some(&mut get_mut(&mut self.gates, turn.arrival)?.contact),
        }
    }

    /// Returns the sums of the amounts of the requests before a turn that aren't overdue for a poll.
    pub(super) fn amounts_present(&self, turn: Turn, now: Timestamp) -> Amounts<u128> {
        let before = self.requests.iter().take_while(|request| request.arrival < turn.arrival);
        let present = before.filter(|request| request.contact.present_until >= now);
        present.fold([0; 4], |mut sums, request| {
            for (sum, amount) in sums.iter_mut().zip(request.terms) {
                *sum += u128::from(amount);
            }
            sums
        })
    }

    /// Returns the contacts of all waiters.
    pub(super) fn contacts_mut(&mut self) -> impl Iterator<Item = &mut Contact> {
        let requests = self.requests.iter_mut().map(|request| &mut request.contact);
        requests.chain(self.gates.iter_mut().map(|gate| &mut gate.contact))
    }

    pub(super) fn gate_terms(&self, arrival: u64) -> Option<&GateTerms> {
        get(&self.gates, arrival).map(|gate| &*gate.terms)
    }

    /// Removes a waiter. Returns its waker.
    pub(super) fn remove(&mut self, turn: Turn) -> Option<Waker> {
        let (contact, amounts) = match turn.kind {
            Kind::Request => {
                let request = remove(&mut self.requests, turn.arrival)?;
                (request.contact, request.terms)
            }
            Kind::Gate => (remove(&mut self.gates, turn.arrival)?.contact, NO_AMOUNTS),
        };
        for (sum, amount) in self.amounts.iter_mut().zip(amounts) {
            *sum = sum.saturating_sub(u128::from(amount));
        }
        Some(contact.waker)
    }

    /// Returns whether a waiter with this arrival number goes behind all others.
    pub(super) fn is_last(&self, arrival: u64) -> bool {
        self.first().is_some()
            && self.waiters_before(arrival) == self.requests.len() + self.gates.len()
    }

    /// Returns the number of waiters that arrived before this number.
    pub(super) fn waiters_before(&self, arrival: u64) -> usize {
        let either = |(Ok(at) | Err(at)): Result<usize, usize>| at;
        either(position(&self.requests, arrival)) + either(position(&self.gates, arrival))
    }

    /// Adds the service of a request that was admitted.
    pub(super) fn charge(&mut self, service: Service) {
        self.weight = service.weight.max(1);
        let unit = u128::from(service.unit.max(1)) << FRACTION_BITS;
        let share = if self.weight == 1 { unit } else { unit / u128::from(self.weight) };
        self.start = self.start.saturating_add(share);
    }
}

/// Inserts a waiter. If it is there already, returns its terms and the new ones.
fn enter<T>(
    waiters: &mut Waiters<T>,
    arrival: u64,
    terms: T,
    contact: Contact,
) -> Result<(), (&mut T, T)> {
    match position(waiters, arrival) {
        Ok(at) => Err((&mut waiters[at].terms, terms)),
        Err(at) => {
            waiters.insert(at, Waiter { arrival, contact, terms });
            Ok(())
        }
    }
}

fn get<T>(waiters: &Waiters<T>, arrival: u64) -> Option<&Waiter<T>> {
    waiters.get(position(waiters, arrival).ok()?)
}

fn get_mut<T>(waiters: &mut Waiters<T>, arrival: u64) -> Option<&mut Waiter<T>> {
    let at = position(waiters, arrival).ok()?;
    waiters.get_mut(at)
}

fn remove<T>(waiters: &mut Waiters<T>, arrival: u64) -> Option<Waiter<T>> {
    waiters.remove(position(waiters, arrival).ok()?)
}

fn position<T>(waiters: &Waiters<T>, arrival: u64) -> Result<usize, usize> {
    // Nearly every waiter enters at the end and leaves at the front.
    match (waiters.front(), waiters.back()) {
        (_, Some(last)) if last.arrival < arrival => Err(waiters.len()),
        (Some(first), _) if first.arrival == arrival => Ok(0),
        _ => waiters.binary_search_by_key(&arrival, |waiter| waiter.arrival),
    }
}

/// The fraction of a nanosecond of virtual time.
const FRACTION_BITS: u32 = 20;
