//! A model of the turns of waiting requests at a store: three processes with one request each, of which the first is of a
//! lower priority and the others are of two flows of the higher one.
//!
//! Time passes in ticks, in each of which the bucket refills by one unit and every request that waits asks again. A
//! request can give up at any time. That of the lower priority is sent again within [`GAP`], and stays once its priority is
//! starved; the others are sent whenever they like.

use super::search::Model;

/// The rules of the turns, and variants without one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    /// `true` if the last grant of a priority is remembered while none of its requests waits.
    pub(super) remembers: bool,
    /// `true` if a priority that had no grant for some time has a turn.
    pub(super) serves_starved: bool,
    /// `true` if the flow that has had less service goes first.
    pub(super) counts_service: bool,
    /// `true` if a flow that returns starts at the current virtual time.
    pub(super) starts_now: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The store: the level of the bucket, and the tickets in order of arrival.
    level: u8,
    tickets: Vec<usize>,
    /// The request whose turn it is.
    head: Option<usize>,
    /// The ticks since the last grant of the lower priority, or since it first waited; none if that is forgotten.
    unserved: Option<u8>,
    /// The virtual times at which the next requests of both flows start, after the current one.
    starts: [u8; 2],
    /// For each process that waits, whether it has asked in this tick.
    waiting: [Option<bool>; 3],
    /// The ticks since the first request last waited, and since it was last granted.
    absent: u8,
    starved: u8,
    /// By how much more service the first flow had than the second while both waited.
    lead: i8,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Tick,
    Request(usize),
    Ask(usize),
    GiveUp(usize),
}

impl Model for Turns {
    type State = State;
    type Step = Step;

    fn start(&self) -> State {
        State {
            level: 0,
            tickets: Vec::new(),
            head: None,
            unserved: None,
            starts: [0; 2],
            waiting: [None; 3],
            absent: 0,
            starved: 0,
            lead: 0,
        }
    }

    fn steps(&self, state: &State) -> Vec<Step> {
        let mut steps = Vec::new();
        for (process, waiting) in state.waiting.iter().enumerate() {
            match waiting {
                None => steps.push(Step::Request(process)),
                Some(false) => steps.push(Step::Ask(process)),
                Some(true) => {}
            }
            let is_starved = process == LOW && state.unserved == Some(STARVATION);
            if state.tickets.contains(&process) && !is_starved {
                steps.push(Step::GiveUp(process));
            }
        }
        let has_asked = state.waiting.iter().all(|waiting| waiting.unwrap_or(true));
        if has_asked && (state.waiting[LOW].is_some() || state.absent < GAP) {
            steps.push(Step::Tick);
        }
        steps
    }

    fn take(&self, state: &State, step: Step) -> Result<State, &'static str> {
        let mut next = state.clone();
        match step {
            Step::Tick => {
                next.level = (next.level + 1).min(CAPACITY);
                next.unserved = next.unserved.map(|ticks| (ticks + 1).min(STARVATION));
                next.waiting.iter_mut().flatten().for_each(|has_asked| *has_asked = false);
                next.absent = if next.waiting[LOW].is_some() { 0 } else { next.absent + 1 };
                next.starved += 1;
                if next.starved > MAX_TICKS {
                    return Err(STARVED);
                }
            }
            Step::Request(process) => next.waiting[process] = Some(false),
            Step::Ask(process) => self.ask(&mut next, process)?,
            Step::GiveUp(process) => {
                next.waiting[process] = None;
                self.leave(&mut next, process);
                next.lead = 0;
                self.choose(&mut next);
            }
        }
        Ok(next)
    }
}

impl Turns {
    fn ask(&self, state: &mut State, process: usize) -> Result<(), &'static str> {
        if !state.tickets.contains(&process) {
            state.tickets.push(process);
            if process == LOW {
                state.unserved = state.unserved.or(Some(0));
            }
        }
        self.choose(state);
        let sorted = self.sorted(state);
        let kept: u8 =
            sorted.iter().take_while(|other| **other != process).map(|p| NEEDS[*p]).sum();
        if state.level < NEEDS[process] + kept {
            state.waiting[process] = Some(true);
            return Ok(());
        }
        state.level -= NEEDS[process];
        state.waiting[process] = None;
        self.leave(state, process);
        if process == LOW {
            (state.unserved, state.starved) = (state.unserved.and(Some(0)), 0);
        } else {
            self.charge(state, process)?;
        }
        self.choose(state);
        Ok(())
    }

    /// Charges the flow of a request that is granted.
    fn charge(&self, state: &mut State, process: usize) -> Result<(), &'static str> {
        let (own, other) = (process - 1, 2 - process);
        let begin = state.starts[own];
        state.starts[own] += NEEDS[process];
        // Virtual times are those after the start of the last granted request.
        let passed =
            if self.starts_now { begin } else { state.starts[own].min(state.starts[other]) };
        state.starts = state.starts.map(|start| start.saturating_sub(passed).min(MAX_AHEAD));
        let service = NEEDS[process].cast_signed();
        let is_waited_for = state.tickets.contains(&(other + 1));
        state.lead = match is_waited_for {
            true => state.lead + if own == 0 { service } else { -service },
            false => 0,
        };
        if state.lead.abs() > MAX_LEAD { Err(UNFAIR) } else { Ok(()) }
    }

    /// Removes a ticket.
    fn leave(&self, state: &mut State, process: usize) {
        state.tickets.retain(|other| *other != process);
        state.head = state.head.filter(|head| *head != process);
        if process == LOW && !self.remembers {
            state.unserved = None;
        }
    }

    /// Chooses the head: a request of a higher priority is only passed by one of the other flow.
    fn choose(&self, state: &mut State) {
        let first = self.by_turn(state).first().copied();
        let is_starved = state.tickets.contains(&LOW) && state.unserved == Some(STARVATION);
        let has_turn = self.serves_starved && is_starved && matches!(state.head, None | Some(LOW));
        state.head = if has_turn { Some(LOW) } else { first };
    }

    /// Returns the tickets by priority, service and arrival.
    fn by_turn(&self, state: &State) -> Vec<usize> {
        let mut sorted = state.tickets.clone();
        let start =
            |process: usize| if self.counts_service { state.starts[process - 1] } else { 0 };
        sorted.sort_by_key(|process| if *process == LOW { (1, 0) } else { (0, start(*process)) });
        sorted
    }

    /// Returns the tickets by their turns.
    fn sorted(&self, state: &State) -> Vec<usize> {
        let mut sorted = self.by_turn(state);
        if let Some(head) = state.head {
            sorted.retain(|process| *process != head);
            sorted.insert(0, head);
        }
        sorted
    }
}

pub(super) const STARVED: &str = "a lower priority has a turn";
pub(super) const UNFAIR: &str = "flows that wait get the same service";

/// The process with requests of the lower priority.
const LOW: usize = 0;

/// The amounts that the requests need.
const NEEDS: [u8; 3] = [2, 1, 2];
const CAPACITY: u8 = 2;

/// The ticks without a grant after which the lower priority has a turn, and the longest time without a request of it.
const STARVATION: u8 = 4;
const GAP: u8 = 2;

/// The bound on the time between two grants of the lower priority: that of starvation, the time before the first request, in
/// which it may be absent again, a request that is the head, and its own refill.
const MAX_TICKS: u8 = 14;

/// The bound on what a flow gets more than another one while both wait: a request of each.
const MAX_LEAD: i8 = 3;
/// The virtual time up to which a flow is ahead or behind.
const MAX_AHEAD: u8 = 8;
