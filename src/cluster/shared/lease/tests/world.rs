use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::model::cost;
use super::server::{Reply, Server};
use super::{LEASE, MILLI, SECOND, at};
use crate::cluster::shared::lease::{KeyLease, LeaseCall, LeaseDebit, LeaseLimits};
use crate::cluster::shared::script::Id;
use crate::engine::Rule;
use crate::quota::{Cost, Dimension};

pub(super) struct Holder {
    pub(super) lease: KeyLease,
    /// The offset of its clock, and its drift in parts per million.
    pub(super) ahead: u64,
    pub(super) faster: u64,
    /// The last known limits for lease calls.
    pub(super) room: LeaseLimits,
    /// The number of the open call.
    pub(super) turn: Option<u32>,
    pub(super) waiting: Option<Cost>,
    /// The generation of the holder: a crashed one is replaced.
    pub(super) life: u32,
}

impl Holder {
    pub(super) fn clock(&self, now: u64) -> u64 {
        self.ahead + now + now / 1_000_000 * self.faster
    }
}

#[derive(Debug)]
pub(super) enum Event {
    /// A request arrives, or retries.
    Comes(usize),
    /// A call arrives at the server.
    Sent(usize, u32, Box<LeaseCall>),
    /// A response arrives.
    Answered(usize, u32, u32, Reply, LeaseLimits),
    /// A call times out.
    Overdue(usize, u32, u32),
    /// A request ends.
    Ends(usize, u32, LeaseDebit, Cost, Cost),
    Tick(usize),
}

/// The fault rates of a simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    /// Messages of 1,000 that are lost, and that are late.
    pub(super) lost: u64,
    pub(super) late: u64,
    /// Whether each holder is disconnected for 3 of every 8 lease durations.
    pub(super) cut: bool,
    /// Requests of 1,000 after which the process crashes.
    pub(super) crashes: u64,
    /// Nanoseconds between two requests of a holder, on average.
    pub(super) pause: u64,
    pub(super) holders: usize,
    pub(super) seconds: u64,
}

impl Fate {
    pub(super) const CALM: Self = Self {
        lost: 0,
        late: 0,
        cut: false,
        crashes: 0,
        pause: 10 * MILLI,
        holders: 4,
        seconds: 20,
    };
}

/// A charge of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) at: u64,
    pub(super) requests: u64,
    pub(super) tokens: u64,
}

pub(super) struct World {
    pub(super) fate: Fate,
    pub(super) seed: u64,
    pub(super) now: u64,
    pub(super) number: u64,
    pub(super) server: Server,
    pub(super) holders: Vec<Holder>,
    pub(super) events: BinaryHeap<Reverse<(u64, u64)>>,
    pub(super) what: HashMap<u64, Event>,
    pub(super) uses: Vec<Use>,
}

impl World {
    pub(super) fn new(rules: &Arc<[Rule]>, fate: Fate, seed: u64) -> Self {
        let server = Server::new(rules);
        let (events, what) = (BinaryHeap::new(), HashMap::new());
        let mut world = Self {
            fate,
            seed,
            now: 1_000 * SECOND,
            number: 0,
            server,
            holders: Vec::new(),
            events,
            what,
            uses: Vec::new(),
        };
        for index in 0..fate.holders {
            let holder = world.holder(rules, 0);
            world.holders.push(holder);
            let first = world.random(2 * fate.pause + 1);
            world.at(first, Event::Comes(index));
            world.at(0, Event::Tick(index));
        }
        world
    }

    pub(super) fn holder(&mut self, rules: &Arc<[Rule]>, life: u32) -> Holder {
        self.number += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.number.to_be_bytes());
        let lease = KeyLease::new(Arc::clone(rules), Id(id), 1, Duration::from_nanos(LEASE));
        let (ahead, faster) = (self.random(100 * SECOND), self.random(2_000));
        let room = LeaseLimits { available: None, members: self.fate.holders as u64 };
        Holder { lease, ahead, faster, room, turn: None, waiting: None, life }
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }

    pub(super) fn at(&mut self, after: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((self.now + after, self.number)));
        self.what.insert(self.number, event);
    }

    /// Returns the latency of a message; `None` if it is lost.
    pub(super) fn way(&mut self, holder: usize) -> Option<u64> {
        let cut = self.fate.cut && (self.now / LEASE + 3 * holder as u64) % 8 < 3;
        match self.random(1_000) {
            _ if cut => None,
            n if n < self.fate.lost => None,
            n if n < self.fate.lost + self.fate.late => Some(self.random(3 * LEASE)),
            _ => Some(self.random(2 * MILLI)),
        }
    }

    pub(super) fn run(&mut self) {
        let end = self.now + self.fate.seconds * SECOND;
        while let Some(Reverse((at, number))) = self.events.pop() {
            self.now = at;
            let event = self.what.remove(&number).unwrap();
            match event {
                // After the end no requests arrive, and leases run out.
                Event::Comes(_) if at > end => {}
                Event::Tick(_) if at > end + 20 * LEASE => {}
                event => self.step(event),
            }
        }
        self.server.expire(self.now + 10 * LEASE);
    }

    pub(super) fn step(&mut self, event: Event) {
        match event {
            Event::Comes(index) => {
                let pause = self.random(2 * self.fate.pause + 1);
                self.at(pause, Event::Comes(index));
                if self.holders[index].waiting.is_none() {
                    let cost = cost(1, self.random(5));
                    self.holders[index].waiting = Some(cost);
                    self.try_serve(index);
                }
            }
            Event::Sent(index, life, ask) => {
                let reply = self.server.request_lease(&ask, self.now);
                let room = self.server.lease_limits(self.fate.holders as u64, self.now);
                if let Some(way) = self.way(index) {
                    let turn = ask.wanted.turn;
                    self.at(way, Event::Answered(index, life, turn, reply, room));
                }
            }
            Event::Answered(index, life, turn, reply, room) => {
                let (now, holder) = (self.now, &mut self.holders[index]);
                if (holder.life, holder.turn) != (life, Some(turn)) {
                    return;
                }
                let clock = holder.clock(now);
                (holder.turn, holder.room) = (None, room);
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
            Event::Overdue(index, life, turn) => {
                let holder = &mut self.holders[index];
                if (holder.life, holder.turn) == (life, Some(turn)) {
                    holder.turn = None;
                    holder.lease.on_no_response();
                }
            }
            Event::Ends(index, life, taken, reserved, actual) => {
                if self.holders[index].life == life {
                    self.holders[index].lease.settle(taken, &reserved, &actual);
                }
            }
            Event::Tick(index) => {
                self.at(LEASE / 50, Event::Tick(index));
                self.try_serve(index);
                let (now, holder) = (self.now, &self.holders[index]);
                if holder.turn.is_none() && holder.lease.is_due(at(holder.clock(now))) {
                    self.ask(index, None);
                }
            }
        }
    }

    /// Serves the waiting request of a holder, if any.
    pub(super) fn try_serve(&mut self, index: usize) {
        let (now, holder) = (self.now, &mut self.holders[index]);
        let Some(reserved) = holder.waiting.clone() else { return };
        let clock = holder.clock(now);
        let Some(taken) = holder.lease.try_take(&self.server.rules, &reserved, at(clock)) else {
            if holder.turn.is_none()
                && holder.lease.may_ask(&self.server.rules, &reserved, at(clock))
            {
                self.ask(index, Some(&reserved));
            }
            return;
        };
        holder.waiting = None;
        let life = holder.life;
        let actual = cost(1, self.random(reserved.amount(&Dimension::Tokens) + 1));
        let long = self.random(LEASE) / 2 + 1;
        // Amounts in flight of a lapsed lease count from the lapse.
        let calm = self.fate.lost + self.fate.late + self.fate.crashes == 0 && !self.fate.cut;
        let later = if calm { self.random(long) } else { 0 };
        let tokens = actual.amount(&Dimension::Tokens);
        self.uses.push(Use { at: now, requests: 1, tokens: 0 });
        self.uses.push(Use { at: now + later, requests: 0, tokens });
        self.at(long, Event::Ends(index, life, taken, reserved, actual));
        if self.random(1_000) < self.fate.crashes {
            let rules = Arc::clone(&self.server.rules);
            self.holders[index] = self.holder(&rules, life + 1);
        }
    }

    pub(super) fn ask(&mut self, index: usize, waiting: Option<&Cost>) {
        let (now, holder) = (self.now, &mut self.holders[index]);
        let clock = holder.clock(now);
        let ask = holder.lease.prepare_call(waiting, &holder.room.clone(), at(clock));
        let (life, turn) = (holder.life, ask.wanted.turn);
        holder.turn = Some(turn);
        if let Some(way) = self.way(index) {
            self.at(way, Event::Sent(index, life, Box::new(ask)));
        }
        self.at(50 * MILLI, Event::Overdue(index, life, turn));
    }
}
