//! A model of what processes report to a store that has lost its data, with requests in flight.
//!
//! The limit never resets. Each process has at most one request in flight, which it settles with one unit or
//! with none. The store can lose its data at any time. Each process then reports the request that it has in
//! flight, and the last state that it has seen; it decides by the store again when all have reported.

use super::search::Model;

/// The rules of the protocol, and variants without one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reports {
    /// A process waits until all have reported.
    pub(super) waits_for_all: bool,
    /// Requests in flight are restored.
    pub(super) restores_held: bool,
    /// The latest of all views replaces the others, instead of being added to them.
    pub(super) takes_latest: bool,
    /// A process keeps its view when it reports: the store may not have all reports yet.
    pub(super) keeps_view: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    store: Store,
    processes: [Process; PROCESSES],
    used: u8,
    requests: u8,
    losses: u8,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Store {
    /// The number of losses before.
    generation: u8,
    time: u8,
    used: u8,
    held: [bool; PROCESSES],
    reported: [bool; PROCESSES],
    /// The time of the latest view that was reported, and its usage.
    restored: (u8, u8),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Process {
    /// The generation that has all usage of this process.
    generation: u8,
    /// The time and the usage of the last state that it has seen.
    view: (u8, u8),
    is_in_flight: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Request(usize),
    Settle(usize, u8),
    Lose,
    Report(usize),
    Connect(usize),
    Rest,
}

impl Model for Reports {
    type State = State;
    type Step = Step;

    fn start(&self) -> State {
        State {
            store: Store { reported: [true; PROCESSES], ..Store::default() },
            processes: Default::default(),
            used: 0,
            requests: 0,
            losses: 0,
        }
    }

    fn steps(&self, state: &State) -> Vec<Step> {
        let mut steps = vec![Step::Rest];
        if state.losses < MAX_LOSSES {
            steps.push(Step::Lose);
        }
        for (at, process) in state.processes.iter().enumerate() {
            let is_connected = process.generation == state.store.generation;
            match process.is_in_flight {
                _ if !is_connected && !state.store.reported[at] => steps.push(Step::Report(at)),
                _ if !is_connected && self.may_connect(&state.store) => {
                    steps.push(Step::Connect(at));
                }
                true if is_connected => steps.extend([Step::Settle(at, 0), Step::Settle(at, 1)]),
                false if is_connected && state.requests < MAX_REQUESTS => {
                    steps.push(Step::Request(at));
                }
                _ => {}
            }
        }
        steps
    }

    fn take(&self, state: &State, step: Step) -> Result<State, &'static str> {
        let mut next = state.clone();
        let State { store, processes, used, requests, losses } = &mut next;
        match step {
            Step::Request(at) => {
                *requests += 1;
                if store.used + count(&store.held) < LIMIT {
                    (store.held[at], processes[at].is_in_flight) = (true, true);
                }
                store.answer(&mut processes[at]);
            }
            Step::Settle(at, amount) => {
                if std::mem::take(&mut store.held[at]) {
                    store.used += amount;
                }
                *used += amount;
                processes[at].is_in_flight = false;
                store.answer(&mut processes[at]);
            }
            Step::Lose => {
                *losses += 1;
                let (generation, time) = (store.generation + 1, store.time);
                *store = Store { generation, time, ..Store::default() };
            }
            Step::Report(at) => self.report(store, &mut processes[at], at),
            Step::Connect(at) => processes[at].generation = store.generation,
            Step::Rest => {}
        }
        next.check()
    }
}

impl Reports {
    fn may_connect(&self, store: &Store) -> bool {
        !self.waits_for_all || store.reported.iter().all(|reported| *reported)
    }

    fn report(&self, store: &mut Store, process: &mut Process, at: usize) {
        store.reported[at] = true;
        store.held[at] = process.is_in_flight && self.restores_held;
        let (time, used) = process.view;
        if !self.takes_latest {
            store.used += used;
        } else if time > store.restored.0 {
            store.used = store.used - store.restored.1 + used;
            store.restored = (time, used);
        }
        if !self.keeps_view {
            store.answer(process);
        }
    }
}

impl Store {
    /// Answers a call, at a time of its own.
    fn answer(&mut self, process: &mut Process) {
        self.time += 1;
        process.view = (self.time, self.used);
    }
}

impl State {
    fn check(self) -> Result<Self, &'static str> {
        let in_flight = self.processes.iter().filter(|process| process.is_in_flight).count();
        if self.used + u8::try_from(in_flight).unwrap_or(u8::MAX) > LIMIT {
            return Err(super::model::EXCEEDED);
        }
        if self.store.used > self.used {
            return Err(COUNTED_TWICE);
        }
        Ok(self)
    }
}

fn count(held: &[bool]) -> u8 {
    held.iter().map(|held| u8::from(*held)).sum()
}

pub(super) const COUNTED_TWICE: &str = "the store never counts more than was used";

const PROCESSES: usize = 3;
const LIMIT: u8 = 2;
const MAX_REQUESTS: u8 = 4;
const MAX_LOSSES: u8 = 2;
