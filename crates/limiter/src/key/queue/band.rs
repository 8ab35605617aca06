use std::collections::{BTreeSet, HashMap};
use std::task::Waker;

use super::contact::Contact;
use super::flow::Flow;
use super::flow_order::{FlowOrder, FlowRank};
use super::priority::Priority;
use super::turn::{Amounts, GateTerms, Kind, Service, Turn};
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
    /// The flows with waiters.
    order: FlowOrder,
    /// The flows without waiters whose virtual time is ahead.
    idle: BTreeSet<(u128, u64)>,
    requests: usize,
    gates: usize,
}

impl Band {
    pub(super) fn new(priority: Priority, served_at: Timestamp) -> Self {
        Self {
            priority,
            served_at,
            time: 0,
            flows: HashMap::default(),
            order: FlowOrder::default(),
            idle: BTreeSet::new(),
            requests: 0,
            gates: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.first().is_none()
    }

    /// Returns the number of requests that wait.
    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    /// Returns the number of requests and gates that wait.
    pub(super) fn waiters(&self) -> usize {
        self.requests + self.gates
    }

    /// Returns the number of flows with waiters.
    pub(super) fn flows(&self) -> usize {
        self.order.len()
    }

    /// Returns the first waiter of the flow that goes next.
    pub(super) fn first(&self) -> Option<Turn> {
        self.order.first().map(|rank| self.turn(rank))
    }

    /// Returns the wakers of all waiters: flows in the order in which they go, each in order of arrival.
    pub(super) fn wakers(&self) -> impl Iterator<Item = (Kind, &Waker)> {
        self.order.iter().filter_map(|flow| self.flows.get(&flow)).flat_map(Flow::wakers)
    }

    /// Returns the first request of the flow that goes first of those that have one.
    pub(super) fn first_request(&self) -> Option<Turn> {
        if self.requests == 0 {
            return None;
        }
        self.order.iter().find_map(|flow| {
            let arrival = self.flows.get(&flow)?.first_request()?;
            Some(Turn::request(arrival).within(self.priority, flow))
        })
    }

    pub(super) fn enter(
        &mut self,
        turn: Turn,
        service: Service,
        gate: Option<GateTerms>,
        contact: Contact,
    ) {
        let flow = self.flows.entry(turn.flow).or_insert_with(|| Flow::new(self.time));
        let old = flow.rank(turn.flow);
        if old.is_none() {
            self.idle.remove(&(flow.start, turn.flow));
        }
        let is_new = flow.enter(turn, service, gate, contact);
        self.order.replace(old, flow.rank(turn.flow));
        if is_new {
            *self.count_mut(turn) += 1;
        }
    }

    /// Removes a waiter. Returns its waker, and the next waiter of its flow.
    pub(super) fn remove(&mut self, turn: Turn) -> Option<(Waker, Option<Turn>)> {
        let flow = self.flows.get_mut(&turn.flow)?;
        let old = flow.rank(turn.flow);
        let waker = flow.remove(turn)?;
        let (start, new) = (flow.start, flow.rank(turn.flow));
        self.order.replace(old, new);
        if new.is_none() {
            self.retire(turn.flow, start);
        }
        *self.count_mut(turn) -= 1;
        Some((waker, new.map(|rank| self.turn(rank))))
    }

    /// Removes a waiter that is admitted, and charges its flow. Returns its waker.
    pub(super) fn grant(&mut self, turn: Turn, service: Service) -> Option<Waker> {
        let flow = self.flows.get_mut(&turn.flow)?;
        let old = flow.rank(turn.flow);
        let waker = flow.remove(turn)?;
        self.time = self.time.max(flow.start);
        flow.charge(service);
        let (start, new) = (flow.start, flow.rank(turn.flow));
        self.order.replace(old, new);
        if new.is_none() {
            self.retire(turn.flow, start);
        }
        self.forget_idle();
        *self.count_mut(turn) -= 1;
        Some(waker)
    }

    /// Charges a flow for a request that is admitted without waiting here, and moves the virtual time of the
    /// band to it.
    pub(super) fn charge(&mut self, flow: u64, service: Service) {
        let time = self.time;
        let charged = self.flows.entry(flow).or_insert_with(|| Flow::new(time));
        let old = charged.rank(flow);
        if old.is_none() {
            self.idle.remove(&(charged.start, flow));
        }
        self.time = time.max(charged.start);
        charged.charge(service);
        let start = charged.start;
        self.order.replace(old, charged.rank(flow));
        if old.is_none() {
            self.retire(flow, start);
        }
        self.forget_idle();
    }

    /// Returns the contact of a waiter.
    pub(super) fn contact(&self, turn: Turn) -> Option<&Contact> {
        self.flows.get(&turn.flow)?.contact(turn)
    }

    pub(super) fn contact_mut(&mut self, turn: Turn) -> Option<&mut Contact> {
        self.flows.get_mut(&turn.flow)?.contact_mut(turn)
    }

    /// Returns the contacts of all waiters.
    pub(super) fn contacts_mut(&mut self) -> impl Iterator<Item = &mut Contact> {
        self.flows.values_mut().flat_map(Flow::contacts_mut)
    }

    /// Returns the amounts of the requests that certainly go before a new one: those of its flow.
    pub(super) fn amounts_before(&self, turn: Turn) -> Option<Amounts<u128>> {
        let flow = self.flows.get(&turn.flow).filter(|flow| flow.is_last(turn.arrival))?;
        Some(flow.amounts)
    }

    /// Returns the amounts of those of them that aren't overdue for a poll.
    pub(super) fn amounts_present(&self, turn: Turn, now: Timestamp) -> Amounts<u128> {
        self.flows.get(&turn.flow).map_or([0; 4], |flow| flow.amounts_present(turn, now))
    }

    pub(super) fn gate_terms(&self, turn: Turn) -> Option<&GateTerms> {
        self.flows.get(&turn.flow)?.gate_terms(turn.arrival)
    }

    /// Returns the number of waiters of its flow that arrived before a waiter.
    pub(super) fn rank_in_flow(&self, turn: Turn) -> Option<usize> {
        Some(self.flows.get(&turn.flow)?.waiters_before(turn.arrival))
    }

    /// Returns the number of waiters of the kind of a turn.
    fn count_mut(&mut self, turn: Turn) -> &mut usize {
        if turn.is_gate() { &mut self.gates } else { &mut self.requests }
    }

    fn turn(&self, first: FlowRank) -> Turn {
        let FlowRank { kind, flow, arrival, .. } = first;
        Turn { kind, priority: self.priority, flow, arrival }
    }

    /// Forgets the flows without waiters whose virtual time is no longer ahead.
    fn forget_idle(&mut self) {
        while let Some(&(start, flow)) = self.idle.first()
            && start <= self.time
        {
            self.idle.pop_first();
            self.flows.remove(&flow);
        }
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
