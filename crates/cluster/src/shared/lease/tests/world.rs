use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::engine::Rule;
use paceline_limiter::quota::{Cost, Dimension};

use super::model::cost;
use super::server::{Reply, Server};
use super::{LEASE, MILLI, SECOND, at};
use crate::shared::lease::{KeyLease, LeaseCall, LeaseDebit, LeaseLimits};
use crate::shared::script::Id;

pub(super) struct Holder {
    pub(super) lease: KeyLease,
    /// The offset of the holder's clock in nanoseconds, and its drift in parts per million.
    pub(super) offset: u64,
    pub(super) drift: u64,
    /// The last known limits for lease calls.
    pub(super) limits: LeaseLimits,
    /// The number of the open call.
    pub(super) open_call: Option<u32>,
    pub(super) waiting: Option<Cost>,
    /// The number of crashes before: each crash replaces the holder.
    pub(super) generation: u32,
}

impl Holder {
    pub(super) fn clock(&self, now: u64) -> u64 {
        self.offset + now + now / 1_000_000 * self.drift
    }
}

#[derive(Debug)]
pub(super) enum Event {
    /// A request arrives, or retries.
    Request { holder: usize },
    /// A call arrives at the server.
    Call { holder: usize, generation: u32, call: Box<LeaseCall> },
    /// A response arrives.
    Response { holder: usize, generation: u32, call_number: u32, reply: Reply, limits: LeaseLimits },
    /// A call times out.
    Timeout { holder: usize, generation: u32, call_number: u32 },
    /// A request ends.
    End { holder: usize, generation: u32, debit: LeaseDebit, reserved: Cost, actual: Cost },
    /// A holder checks for due renewals.
    Tick { holder: usize },
}

/// The load and the fault rates of a simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    /// The number of messages per 1,000 that are lost, and that are late.
    pub(super) lost: u64,
    pub(super) late: u64,
    /// True if each holder is disconnected for 3 of every 8 lease durations.
    pub(super) cut: bool,
    /// The number of requests per 1,000 after which the process crashes.
    pub(super) crashes: u64,
    /// The average time between two requests of a holder, in nanoseconds.
    pub(super) pause: u64,
    pub(super) holders: usize,
    pub(super) seconds: u64,
}

impl Scenario {
    pub(super) const WITHOUT_FAULTS: Self = Self {
        lost: 0,
        late: 0,
        cut: false,
        crashes: 0,
        pause: 10 * MILLI,
        holders: 4,
        seconds: 20,
    };
}

/// Usage that the provider counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) at: u64,
    pub(super) requests: u64,
    pub(super) tokens: u64,
}

pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) seed: u64,
    pub(super) now: u64,
    pub(super) number: u64,
    pub(super) server: Server,
    pub(super) holders: Vec<Holder>,
    pub(super) events: BinaryHeap<Reverse<(u64, u64)>>,
    pub(super) scheduled: HashMap<u64, Event>,
    pub(super) uses: Vec<Use>,
}

impl World {
    pub(super) fn new(rules: &Arc<[Rule]>, scenario: Scenario, seed: u64) -> Self {
        let server = Server::new(rules);
        let (events, scheduled) = (BinaryHeap::new(), HashMap::new());
        let mut world = Self {
            scenario,
            seed,
            now: 1_000 * SECOND,
            number: 0,
            server,
            holders: Vec::new(),
            events,
            scheduled,
            uses: Vec::new(),
        };
        for index in 0..scenario.holders {
            let holder = world.holder(rules, 0);
            world.holders.push(holder);
            let first = world.random(2 * scenario.pause + 1);
            world.schedule(first, Event::Request { holder: index });
            world.schedule(0, Event::Tick { holder: index });
        }
        world
    }

    pub(super) fn holder(&mut self, rules: &Arc<[Rule]>, generation: u32) -> Holder {
        self.number += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.number.to_be_bytes());
        let lease = KeyLease::new(Arc::clone(rules), Id(id), 1, Duration::from_nanos(LEASE));
        let (offset, drift) = (self.random(100 * SECOND), self.random(2_000));
        let limits = LeaseLimits { available: None, members: self.scenario.holders as u64 };
        Holder { lease, offset, drift, limits, open_call: None, waiting: None, generation }
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }

    pub(super) fn schedule(&mut self, after: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((self.now + after, self.number)));
        self.scheduled.insert(self.number, event);
    }

    /// Returns the latency of a message; `None` if it is lost.
    pub(super) fn latency(&mut self, holder: usize) -> Option<u64> {
        let cut = self.scenario.cut && (self.now / LEASE + 3 * holder as u64) % 8 < 3;
        match self.random(1_000) {
            _ if cut => None,
            n if n < self.scenario.lost => None,
            n if n < self.scenario.lost + self.scenario.late => Some(self.random(3 * LEASE)),
            _ => Some(self.random(2 * MILLI)),
        }
    }

    pub(super) fn run(&mut self) {
        let end = self.now + self.scenario.seconds * SECOND;
        while let Some(Reverse((at, number))) = self.events.pop() {
            self.now = at;
            let event = self.scheduled.remove(&number).unwrap();
            match event {
                // After the end, no requests arrive, and leases expire.
                Event::Request { .. } if at > end => {}
                Event::Tick { .. } if at > end + 20 * LEASE => {}
                event => self.step(event),
            }
        }
        self.server.expire(self.now + 10 * LEASE);
    }

    pub(super) fn step(&mut self, event: Event) {
        match event {
            Event::Request { holder: index } => {
                let pause = self.random(2 * self.scenario.pause + 1);
                self.schedule(pause, Event::Request { holder: index });
                if self.holders[index].waiting.is_none() {
                    let cost = cost(1, self.random(5));
                    self.holders[index].waiting = Some(cost);
                    self.try_serve(index);
                }
            }
            Event::Call { holder, generation, call } => {
                let reply = self.server.request_lease(&call, self.now);
                let limits = self.server.lease_limits(self.scenario.holders as u64, self.now);
                if let Some(latency) = self.latency(holder) {
                    let call_number = call.wanted.call_number;
                    let response =
                        Event::Response { holder, generation, call_number, reply, limits };
                    self.schedule(latency, response);
                }
            }
            Event::Response { holder: index, generation, call_number, reply, limits } => {
                let (now, holder) = (self.now, &mut self.holders[index]);
                if (holder.generation, holder.open_call) != (generation, Some(call_number)) {
                    return;
                }
                let clock = holder.clock(now);
                (holder.open_call, holder.limits) = (None, limits);
                match reply {
                    Reply::Leased(granted) => holder.lease.on_granted(&granted),
                    Reply::Refused(wait) => {
                        holder.lease.on_refused(at(clock + wait.min(LEASE / 8)))
                    }
                    Reply::Unknown => holder.lease.on_unknown(),
                    Reply::Stale => holder.lease.on_no_response(),
                }
                self.try_serve(index);
            }
            Event::Timeout { holder: index, generation, call_number } => {
                let holder = &mut self.holders[index];
                if (holder.generation, holder.open_call) == (generation, Some(call_number)) {
                    holder.open_call = None;
                    holder.lease.on_no_response();
                }
            }
            Event::End { holder: index, generation, debit, reserved, actual } => {
                if self.holders[index].generation == generation {
                    self.holders[index].lease.settle(debit, &reserved, &actual);
                }
            }
            Event::Tick { holder: index } => {
                self.schedule(LEASE / 50, Event::Tick { holder: index });
                self.try_serve(index);
                let (now, holder) = (self.now, &self.holders[index]);
                if holder.open_call.is_none() && holder.lease.is_due(at(holder.clock(now))) {
                    self.send_lease_call(index, None);
                }
            }
        }
    }

    /// Serves the waiting request of a holder, if any.
    pub(super) fn try_serve(&mut self, index: usize) {
        let (now, holder) = (self.now, &mut self.holders[index]);
        let Some(reserved) = holder.waiting.clone() else { return };
        let clock = holder.clock(now);
        let Some(debit) = holder.lease.try_take(&self.server.rules, &reserved, at(clock)) else {
            if holder.open_call.is_none()
                && holder.lease.can_request(&self.server.rules, &reserved, at(clock))
            {
                self.send_lease_call(index, Some(&reserved));
            }
            return;
        };
        holder.waiting = None;
        let generation = holder.generation;
        let actual = cost(1, self.random(reserved.amount(&Dimension::Tokens) + 1));
        let duration = self.random(LEASE) / 2 + 1;
        // If a lease expires, its amounts in flight count from then on.
        let without_faults = self.scenario.lost + self.scenario.late + self.scenario.crashes == 0
            && !self.scenario.cut;
        let later = if without_faults { self.random(duration) } else { 0 };
        let tokens = actual.amount(&Dimension::Tokens);
        self.uses.push(Use { at: now, requests: 1, tokens: 0 });
        self.uses.push(Use { at: now + later, requests: 0, tokens });
        self.schedule(duration, Event::End { holder: index, generation, debit, reserved, actual });
        if self.random(1_000) < self.scenario.crashes {
            let rules = Arc::clone(&self.server.rules);
            self.holders[index] = self.holder(&rules, generation + 1);
        }
    }

    pub(super) fn send_lease_call(&mut self, index: usize, waiting: Option<&Cost>) {
        let (now, holder) = (self.now, &mut self.holders[index]);
        let clock = holder.clock(now);
        let call = holder.lease.prepare_call(waiting, &holder.limits.clone(), at(clock));
        let (generation, call_number) = (holder.generation, call.wanted.call_number);
        holder.open_call = Some(call_number);
        if let Some(latency) = self.latency(index) {
            let call = Box::new(call);
            self.schedule(latency, Event::Call { holder: index, generation, call });
        }
        let timeout = Event::Timeout { holder: index, generation, call_number };
        self.schedule(50 * MILLI, timeout);
    }
}
