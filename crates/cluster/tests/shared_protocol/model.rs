//! A model of the protocol of `cluster::Shared`: a store with one token bucket, processes whose requests
//! wait with tickets, and a process that holds a lease.
//!
//! Time passes in ticks, in each of which the bucket refills by one unit and every live process whose request
//! waits asks again. Calls for a lease take up to one tick each way, and can be lost either way. A process can
//! be killed or frozen at any time. `truth` is a bucket with the same limit that each use is taken from at
//! the time of the use: it doesn't know the protocol.

use super::search::Model;

/// The rules of the protocol, and variants without one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protocol {
    /// The ticks without renewal after which a ticket holds nobody up.
    pub(super) ticket_ticks: u8,
    /// The maximum number of kills and freezes.
    pub(super) faults: u8,
    /// Whether there is a process with a lease.
    pub(super) has_holder: bool,
    /// Whether amounts are kept for tickets of earlier requests.
    pub(super) keeps_amounts: bool,
    /// Whether a holder counts the duration of its lease from the time of its call.
    pub(super) counts_from_call: bool,
    /// The process whose wait is bounded.
    pub(super) watched: usize,
    /// Whether a waiting request that renews its ticket keeps its place.
    pub(super) keeps_place: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The store: the level of the bucket, and the tickets in order: process, and ticks since renewal.
    level: u8,
    tickets: Vec<(usize, u8)>,
    /// The store's record of the lease: amount, and ticks left.
    leased: Option<(u8, u8)>,
    /// Whether the store has charged the holder's last report. Calls have numbers, and repeat the number of
    /// the first call with the same report.
    is_charged: bool,
    waiters: [Waiter; 2],
    holder: Holder,
    truth: u8,
    faults: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Life {
    Live,
    Frozen,
    Dead,
}

/// A process with requests that the store decides, one at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Waiter {
    life: Life,
    /// The ticks for which a request waits, and whether it has asked in this tick.
    waiting: Option<(u8, bool)>,
}

/// A process that admits requests of one unit from a lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Holder {
    life: Life,
    free: u8,
    ticks_left: u8,
    unreported: u8,
    /// The usage of the last report.
    reported: u8,
    /// Whether the store has acknowledged the last report.
    is_acknowledged: bool,
    call: Option<Call>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Call {
    used: u8,
    /// The usage since the last report, which stays leased.
    kept: u8,
    ticks: u8,
    /// The granted amount, or `Some(None)` if the store no longer knows the lease.
    answer: Option<Option<u8>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Tick,
    Request(usize),
    Ask(usize),
    /// Process 2 is the holder.
    Kill(usize),
    Freeze(usize),
    Thaw(usize),
    CallForLease,
    ExecuteCall,
    ReceiveAnswer,
    LoseCall,
    Admit,
}

impl Model for Protocol {
    type State = State;
    type Step = Step;

    fn start(&self) -> State {
        let waiter = Waiter { life: Life::Live, waiting: None };
        let holder = Holder {
            life: Life::Live,
            free: 0,
            ticks_left: 0,
            unreported: 0,
            reported: 0,
            is_acknowledged: true,
            call: None,
        };
        State {
            level: CAPACITY,
            tickets: Vec::new(),
            leased: None,
            is_charged: false,
            waiters: [waiter.clone(), waiter],
            holder,
            truth: CAPACITY,
            faults: 0,
        }
    }

    fn steps(&self, state: &State) -> Vec<Step> {
        let mut steps = Vec::new();
        for (process, waiter) in state.waiters.iter().enumerate() {
            match waiter {
                Waiter { life: Life::Live, waiting: None } => steps.push(Step::Request(process)),
                Waiter { life: Life::Live, waiting: Some((_, false)) } => {
                    steps.push(Step::Ask(process));
                }
                _ => {}
            }
        }
        let Holder { life, free, ticks_left, call, .. } = &state.holder;
        match call {
            None if *life == Life::Live && self.has_holder => steps.push(Step::CallForLease),
            Some(Call { answer: None, .. }) => steps.extend([Step::ExecuteCall, Step::LoseCall]),
            Some(_) if *life == Life::Live => steps.extend([Step::ReceiveAnswer, Step::LoseCall]),
            _ => {}
        }
        if *life == Life::Live && *free > 0 && *ticks_left > 0 {
            steps.push(Step::Admit);
        }
        for process in 0..3 {
            match state.life(process) {
                Life::Live if state.faults < self.faults => {
                    steps.extend([Step::Kill(process), Step::Freeze(process)]);
                }
                Life::Frozen => steps.push(Step::Thaw(process)),
                _ => {}
            }
        }
        if state.may_tick() {
            steps.push(Step::Tick);
        }
        steps
    }

    fn take(&self, state: &State, step: Step) -> Result<State, &'static str> {
        let mut next = state.clone();
        match step {
            Step::Tick => self.tick(&mut next)?,
            Step::Request(process) => next.waiters[process].waiting = Some((0, false)),
            Step::Ask(process) => self.ask(&mut next, process)?,
            Step::Kill(process) => next.stop(process, Life::Dead),
            Step::Freeze(process) => next.stop(process, Life::Frozen),
            Step::Thaw(process) => next.thaw(process),
            Step::CallForLease => next.call_for_lease(),
            Step::ExecuteCall => self.execute_call(&mut next),
            Step::ReceiveAnswer => self.receive_answer(&mut next),
            Step::LoseCall => next.holder.call = None,
            Step::Admit => {
                next.holder.free -= 1;
                next.holder.unreported += 1;
                next.consume(1)?;
            }
        }
        Ok(next)
    }
}

impl Protocol {
    fn tick(&self, state: &mut State) -> Result<(), &'static str> {
        state.level = (state.level + 1).min(CAPACITY);
        state.truth = (state.truth + 1).min(CAPACITY);
        for ticket in &mut state.tickets {
            ticket.1 += 1;
        }
        state.tickets.retain(|(_, ticks)| *ticks < self.ticket_ticks);
        match &mut state.leased {
            Some((amount, 1)) => {
                // A lease that is not renewed counts as used.
                state.level -= *amount;
                state.leased = None;
            }
            Some((_, left)) => *left -= 1,
            None => {}
        }
        state.holder.ticks_left = state.holder.ticks_left.saturating_sub(1);
        if let Some(call) = &mut state.holder.call {
            call.ticks = (call.ticks + 1).min(LEASE);
        }
        for (process, waiter) in state.waiters.iter_mut().enumerate() {
            if let Waiter { life: Life::Live, waiting: Some((ticks, has_asked)) } = waiter {
                *has_asked = false;
                *ticks += u8::from(process == self.watched);
                if *ticks > MAX_TICKS {
                    return Err(NOT_SERVED);
                }
            }
        }
        Ok(())
    }

    /// Decides about the request of a process: it is granted if the amounts of earlier tickets stay.
    fn ask(&self, state: &mut State, process: usize) -> Result<(), &'static str> {
        let place = state.tickets.iter().position(|(other, _)| *other == process);
        let earlier = &state.tickets[..place.unwrap_or(state.tickets.len())];
        let kept: u8 = earlier.iter().map(|(other, _)| NEEDS[*other]).sum();
        let kept = if self.keeps_amounts { kept } else { 0 };
        if state.available() >= NEEDS[process] + kept {
            state.tickets.retain(|(other, _)| *other != process);
            state.level -= NEEDS[process];
            state.waiters[process].waiting = None;
            return state.consume(NEEDS[process]);
        }
        match place {
            Some(place) if self.keeps_place => state.tickets[place].1 = 0,
            _ => {
                state.tickets.retain(|(other, _)| *other != process);
                state.tickets.push((process, 0));
            }
        }
        if let Some((_, has_asked)) = &mut state.waiters[process].waiting {
            *has_asked = true;
        }
        Ok(())
    }

    /// Charges the reported usage, and leases what neither tickets nor other holds need.
    fn execute_call(&self, state: &mut State) {
        let Some(Call { used, kept, .. }) = state.holder.call.clone() else { return };
        let answer = if state.leased.is_none() && used + kept > 0 {
            // The lease has expired, and all of it was counted as used.
            None
        } else {
            if !state.is_charged {
                state.level -= used;
            }
            (state.leased, state.is_charged) = (None, true);
            let tickets: u8 = state.tickets.iter().map(|(process, _)| NEEDS[*process]).sum();
            let granted = state.available().saturating_sub(kept + tickets).min(WANTED);
            state.leased = Some((kept + granted, LEASE));
            Some(granted)
        };
        if let Some(call) = &mut state.holder.call {
            call.answer = Some(answer);
        }
    }

    fn receive_answer(&self, state: &mut State) {
        let Some(Call { used, ticks, answer: Some(answer), .. }) = state.holder.call.take() else {
            return;
        };
        let passed = if self.counts_from_call { ticks } else { 0 };
        let holder = &mut state.holder;
        holder.is_acknowledged = true;
        // If the lease is gone, all usage was counted with it.
        holder.unreported = if answer.is_some() { holder.unreported - used } else { 0 };
        holder.reported = 0;
        (holder.free, holder.ticks_left) = match answer {
            Some(granted) => (granted, LEASE.saturating_sub(passed)),
            None => (0, 0),
        };
    }
}

impl State {
    fn available(&self) -> u8 {
        self.level.saturating_sub(self.leased.map_or(0, |(amount, _)| amount))
    }

    fn life(&self, process: usize) -> Life {
        self.waiters.get(process).map_or(self.holder.life, |waiter| waiter.life)
    }

    fn stop(&mut self, process: usize, life: Life) {
        self.faults += 1;
        match self.waiters.get_mut(process) {
            Some(waiter) => waiter.life = life,
            None => self.holder.life = life,
        }
        if life == Life::Dead {
            // Nothing of a dead process matters any more.
            match self.waiters.get_mut(process) {
                Some(waiter) => waiter.waiting = None,
                None => (self.holder.free, self.holder.unreported) = (0, 0),
            }
        }
    }

    fn thaw(&mut self, process: usize) {
        match self.waiters.get_mut(process) {
            Some(waiter) => {
                waiter.life = Life::Live;
                waiter.waiting = waiter.waiting.map(|_| (0, false));
            }
            None => self.holder.life = Life::Live,
        }
    }

    /// Sends a call that reports the usage and returns what is free.
    fn call_for_lease(&mut self) {
        let holder = &mut self.holder;
        if holder.is_acknowledged {
            (holder.reported, self.is_charged) = (holder.unreported, false);
        }
        // A repeated report is the same as before; usage since then waits.
        let (used, kept) = (holder.reported, holder.unreported - holder.reported);
        holder.call = Some(Call { used, kept, ticks: 0, answer: None });
        (holder.free, holder.is_acknowledged) = (0, false);
    }

    /// Takes a use from the reference bucket.
    fn consume(&mut self, amount: u8) -> Result<(), &'static str> {
        self.truth = self.truth.checked_sub(amount).ok_or(EXCEEDED)?;
        Ok(())
    }

    /// Returns whether all that happens in every tick has happened.
    fn may_tick(&self) -> bool {
        let has_asked = |waiter: &Waiter| {
            waiter.life != Life::Live || waiter.waiting.is_none_or(|(_, has_asked)| has_asked)
        };
        let is_prompt = |call: &Call| call.ticks < 1 || call.answer.is_some();
        self.waiters.iter().all(has_asked) && self.holder.call.as_ref().is_none_or(is_prompt)
    }
}

pub(super) const EXCEEDED: &str = "usage never exceeds the limit";
pub(super) const NOT_SERVED: &str = "the request of a live process is granted";

/// The capacity of the bucket; it refills by one unit in a tick.
const CAPACITY: u8 = 3;

/// The amounts that the requests of each waiting process need.
const NEEDS: [u8; 2] = [3, 1];

/// The amount that the holder requests, and the duration of its lease in ticks.
const WANTED: u8 = 1;
const LEASE: u8 = 2;

/// The bound on the wait of a live process: a ticket of a stopped process, a lease that counts as used, and
/// the amounts of both requests.
const MAX_TICKS: u8 = 10;
