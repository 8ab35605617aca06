use std::collections::{BTreeSet, HashMap};
use std::task::Waker;

use super::flow::{Flow, Waiter};
use super::priority::Priority;
use super::turn::{Amounts, GateTerms, Kind, Service, Turn};
use super::wakers::replace;
use crate::timestamp::Timestamp;

/// The waiters of one priority: flows that share the service by their weights.
///
/// Start-time fair queuing: the flow with the lowest virtual time goes first, at equal times the one
/// whose first waiter arrived first. A flow that becomes active starts at the virtual time of the
/// band, so that it saves up no service while it has no waiters.
#[derive(Debug)]
pub(super) struct Band {
    pub(super) priority: Priority,
    /// The time of its last turn, or since when it has waiters.
    pub(super) served_at: Timestamp,
    /// The virtual time of the flow that was served last.
    time: u128,
    flows: HashMap<u64, Flow, foldhash::fast::FixedState>,
    /// The flows with waiters: virtual time, first number of arrival, flow.
    order: BTreeSet<(u128, u64, u64)>,
    /// The flows without waiters whose virtual time is ahead.
    idle: BTreeSet<(u128, u64)>,
    waiters: usize,
    gates: usize,
}

impl Band {
    pub(super) fn new(priority: Priority, now: Timestamp) -> Self {
        Self {
            priority,
            served_at: now,
            time: 0,
            flows: HashMap::default(),
            order: BTreeSet::new(),
            idle: BTreeSet::new(),
            waiters: 0,
            gates: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters == 0
    }

    /// Returns the number of requests that wait.
    pub(super) fn requests(&self) -> usize {
        self.waiters - self.gates
    }

    /// Returns the flow that goes next.
    pub(super) fn next_flow(&self) -> Option<u64> {
        self.order.first().map(|&(_, _, flow)| flow)
    }

    /// Returns the first waiter of a flow.
    pub(super) fn first_of(&self, flow: u64) -> Option<Turn> {
        let first = self.flows.get(&flow)?.waiters().next()?;
        let turn = Turn::request(first.arrival()).within(self.priority, flow);
        Some(Turn { kind: first.kind(), ..turn })
    }

    /// Returns all waiters: flows in the order in which they go, each in order of arrival.
    pub(super) fn waiters(&self) -> impl Iterator<Item = (u64, &Waiter)> {
        let flows = self.order.iter().filter_map(|&(_, _, id)| Some((id, self.flows.get(&id)?)));
        flows.flat_map(|(id, flow)| flow.waiters().map(move |waiter| (id, waiter)))
    }

    /// Returns the first request of the flow that goes first of those that have one.
    pub(super) fn first_request(&self) -> Option<Turn> {
        if self.requests() == 0 {
            return None;
        }
        self.order.iter().find_map(|&(_, _, flow)| {
            let arrival = self.flows.get(&flow)?.first_request()?;
            Some(Turn::request(arrival).within(self.priority, flow))
        })
    }

    pub(super) fn enter(
        &mut self,
        turn: Turn,
        service: Service,
        gate: Option<GateTerms>,
        waker: &Waker,
    ) {
        let time = self.time;
        let flow = self.flows.entry(turn.flow).or_insert_with(|| Flow::new(time));
        let (start, first) = (flow.start, flow.first());
        if first.is_none() {
            flow.start = start.max(time);
        }
        if !flow.enter(turn, service, gate, waker) {
            return;
        }
        let (at, new_first) = (flow.start, flow.first());
        match first {
            None => _ = self.idle.remove(&(start, turn.flow)),
            Some(first) if new_first != Some(first) => {
                _ = self.order.remove(&(start, first, turn.flow))
            }
            Some(_) => {}
        }
        if first != new_first {
            self.order.extend(new_first.map(|first| (at, first, turn.flow)));
        }
        self.waiters += 1;
        self.gates += usize::from(turn.is_gate());
    }

    pub(super) fn remove(&mut self, turn: Turn, amounts: Amounts<u64>) -> Option<Waker> {
        let flow = self.flows.get_mut(&turn.flow)?;
        let first = flow.first()?;
        let removed = flow.remove(turn, amounts)?;
        self.waiters -= 1;
        self.gates -= usize::from(removed.kind() == Kind::Gate);
        if first == turn.arrival {
            self.order.remove(&(flow.start, first, turn.flow));
            let start = flow.start;
            match flow.first() {
                Some(next) => _ = self.order.insert((start, next, turn.flow)),
                None => self.retire(turn.flow, start),
            }
        }
        Some(removed.waker)
    }

    /// Charges a flow for a request that was admitted, and moves the virtual time of the band to it.
    pub(super) fn charge(&mut self, flow: u64, service: Service) {
        let time = self.time;
        let charged = self.flows.entry(flow).or_insert_with(|| Flow::new(time));
        let (start, first) = (charged.start, charged.first());
        match first {
            Some(first) => _ = self.order.remove(&(start, first, flow)),
            None => {
                self.idle.remove(&(start, flow));
                charged.start = start.max(time);
            }
        }
        self.time = time.max(charged.start);
        charged.charge(service);
        let start = charged.start;
        match first {
            Some(first) => _ = self.order.insert((start, first, flow)),
            None => self.retire(flow, start),
        }
        while let Some(&(start, flow)) = self.idle.first()
            && start <= self.time
        {
            self.idle.pop_first();
            self.flows.remove(&flow);
        }
    }

    /// Replaces the waker of a waiter. Returns the old one.
    pub(super) fn set_waker(&mut self, turn: Turn, waker: &Waker) -> Option<Waker> {
        let waiter = self.flows.get_mut(&turn.flow)?.waiter_mut(turn.arrival)?;
        replace(&mut waiter.waker, waker)
    }

    /// Returns the waker of a waiter.
    pub(super) fn waker(&self, turn: Turn) -> Option<&Waker> {
        self.flows.get(&turn.flow)?.waiter(turn.arrival).map(|waiter| &waiter.waker)
    }

    /// Returns the amounts of the requests that certainly go before a new one: those of its flow.
    pub(super) fn amounts_before(&self, turn: Turn) -> Option<Amounts<u128>> {
        let flow = self.flows.get(&turn.flow).filter(|flow| flow.is_last(turn.arrival))?;
        Some(flow.amounts)
    }

    pub(super) fn gate_terms(&self, turn: Turn) -> Option<&GateTerms> {
        self.flows.get(&turn.flow)?.waiter(turn.arrival)?.gate_terms()
    }

    pub(super) fn rank_in_flow(&self, turn: Turn) -> Option<usize> {
        self.flows.get(&turn.flow)?.rank(turn.arrival)
    }

    /// Keeps the virtual time of a flow without waiters for as long as it is ahead.
    fn retire(&mut self, flow: u64, start: u128) {
        if start > self.time {
            self.idle.insert((start, flow));
        } else {
            self.flows.remove(&flow);
        }
    }
}
