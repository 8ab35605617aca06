use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;

use super::entry::{Entry, Locked};
use super::gate_of_backend::{self, Look};
use super::long_wait;
use super::standing::{OwnStanding, Standing};
use super::table::KeyRef;
use crate::backend::Refreshing;
use crate::clock::Sleep;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::key::queue::{GateTerms, Turn, WaitQueue, is_absent, poll_period};
use crate::quota::Cost;
use crate::sync::Mutex;
use crate::timestamp::Timestamp;

/// A gate that opens when a request under one or several keys would be admitted. It reserves nothing, so
/// that a service can poll it in `poll_ready`.
///
/// A gate waits in the queues of its keys like a request, and opens when its turn comes and the cost fits.
/// If it isn't polled then, the waiters behind it are served without it.
///
/// If a [`Backend`](super::Backend) keeps the buckets, requests wait in their own queues: a gate is shut only while
/// the key cools down, or as long as the cost wouldn't fit within half a second even if all requests in flight
/// came back without a charge. It asks the backend up to twice a second.
///
/// # Cancel safety
/// Dropping a gate gives up its places and wakes the next waiters.
pub struct Gate {
    keys: SmallVec<[KeyGate; 1]>,
    /// The turn in the queues of all keys.
    turn: Option<Turn>,
    standing: Standing,
    /// `true` if a quota's longest wait opens it as a `patience` does.
    keeps_max_wait: bool,
    /// `true` for the gate of a service: it stays open until the service is called, and keeps the cost of
    /// that call free for a moment.
    leaves_claims: bool,
}

/// The gate of one key.
struct KeyGate {
    key_ref: KeyRef,
    entry: Arc<Entry>,
    /// `true` if requests count to the key's limits on spending alone.
    is_spending_key: bool,
    state: GateState,
    timer: Option<(Timestamp, Sleep)>,
    /// A question to the backend. In a mutex, which is never locked, so that the gate is `Sync`.
    refreshing: Option<Mutex<Refreshing>>,
    /// The time of the backend's last answer, or at which none had come.
    asked_at: Option<Timestamp>,
}

/// Idle -> Queued -> Open -> Idle. A gate that doesn't have to wait stays idle.
#[derive(Debug, Clone, Copy)]
enum GateState {
    /// The gate isn't in the queue.
    Idle,
    /// The gate has waited since this time, and is to be polled by the other. If it is polled clearly later, it may
    /// have left the queue without its turn, and starts again at its place.
    Queued { since: Timestamp, polls_by: Timestamp },
    /// By a backend's last known state, its cost wouldn't fit. It has waited since this time, in no queue.
    Shut { since: Timestamp },
    /// Its turn has come, and it was polled at this time.
    Open { at: Timestamp },
}

/// The result of a check of a key.
enum Check {
    Open,
    /// The gate has to check the key again when it is woken, or at this time.
    Shut(Option<Timestamp>),
    /// It has to check the key again when the backend has answered.
    Ask(Refreshing),
}

/// A poll of the gates of all keys.
struct Query<'a> {
    typical: &'a Cost,
    patience: Option<Duration>,
    keeps_max_wait: bool,
    standing: Standing,
    leaves_claim: bool,
}

impl Gate {
    /// Creates a gate of these keys.
    pub(super) fn new(
        keys: impl IntoIterator<Item = (KeyRef, Arc<Entry>)>,
        own: Option<&OwnStanding>,
    ) -> Self {
        let gate = |(key_ref, entry)| KeyGate::new(key_ref, entry, false);
        let keys: SmallVec<[KeyGate; 1]> = keys.into_iter().map(gate).collect();
        let names = keys.iter().map(|key| &key.key_ref.key);
        let core = keys.first().map(|key| &key.entry.core);
        let standing = core.map(|core| Standing::of(own, names, core)).unwrap_or_default();
        Self { keys, turn: None, standing, keeps_max_wait: true, leaves_claims: false }
    }

    /// Lets it wait for longer than the quotas of its keys do, for a user that keeps to these itself.
    pub(super) fn without_max_wait(mut self) -> Self {
        self.keeps_max_wait = false;
        self
    }

    /// Makes it the gate of a service, which [`call_arrival`](Self::call_arrival) and
    /// [`end_turn`](Self::end_turn) enclose the calls of.
    pub(crate) fn leaving_claims(mut self) -> Self {
        self.leaves_claims = true;
        self
    }

    /// Polls whether a request of the `typical` cost would be admitted: no key cools down or has waiting
    /// requests, and the cost fits under each. A cost above a limit's capacity is taken as that capacity.
    ///
    /// With a `patience`, it is also ready as soon as the wait would be longer than that, counted from the
    /// first poll, or unknown: the request itself then gets the error. The longest wait of a key's quota
    /// ([`Quota::max_wait`](crate::Quota::max_wait)) is such a `patience` for that key.
    ///
    /// # Panics
    /// Panics if it has to wait for a time outside a tokio runtime with timers.
    pub fn poll_open(
        &mut self,
        typical: &Cost,
        patience: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if self.keys.first().is_some_and(|key| key.entry.core.limits_spending()) {
            self.follow_spending_keys();
        }
        let Self { keys, turn, standing, keeps_max_wait, leaves_claims } = self;
        let (standing, keeps_max_wait, leaves_claim) = (*standing, *keeps_max_wait, *leaves_claims);
        let query = Query { typical, patience, keeps_max_wait, standing, leaves_claim };
        // A key whose turn came stays open. The others are checked again, since one that was open a moment
        // ago may be shut now.
        for key in &mut *keys {
            std::task::ready!(key.poll_open(&query, turn, cx));
        }
        if !self.leaves_claims {
            self.leave(false);
        }
        Poll::Ready(())
    }

    /// Adds the models to whose limits on spending requests of the keys count, and leaves those to which they no longer
    /// do.
    #[cold]
    fn follow_spending_keys(&mut self) {
        let Self { keys, turn, .. } = self;
        let own = keys.iter().filter(|key| !key.is_spending_key);
        let models: SmallVec<[KeyRef; 1]> =
            own.filter_map(|key| key.key_ref.spending_key()).collect();
        let is_followed = |key: &KeyGate| models.iter().any(|model| model.key == key.key_ref.key);
        keys.retain(|key| {
            let is_kept = !key.is_spending_key || is_followed(key);
            if let (false, Some(turn)) = (is_kept, *turn) {
                key.leave(turn, false);
            }
            is_kept
        });
        for model in models {
            let Ok(entry) = model.entry() else { continue };
            if !keys
                .iter()
                .any(|key| key.key_ref.key == model.key || Arc::ptr_eq(&key.entry, &entry))
            {
                keys.push(KeyGate::new(model, entry, true));
            }
        }
    }

    /// Returns the arrival number for a call that follows immediately after the gate's turn has come.
    #[inline]
    pub(crate) fn call_arrival(&self) -> Option<u64> {
        let now = self.keys.first()?.entry.core.clock.now();
        let is_recent = |key: &KeyGate| match key.state {
            GateState::Open { at } => now.saturating_duration_since(at) <= TURN_TIME,
            _ => false,
        };
        let turn = self.turn.filter(|_| self.keys.iter().any(is_recent));
        turn.map(Turn::arrival)
    }

    /// Ends the turn after the service was called.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        self.leave(true);
    }

    /// Leaves all queues, and ends the claims.
    fn leave(&mut self, is_called: bool) {
        let Some(turn) = self.turn.take() else { return };
        self.keys.iter_mut().for_each(|key| key.leave(turn, is_called));
    }
}

/// The steps of a service, for the models.
#[cfg(shuttle)]
impl Gate {
    /// Makes it the gate of a service.
    pub fn of_service(self) -> Self {
        self.leaving_claims()
    }

    /// Lets a request arrive as the call of the service. Returns its result if it has ended.
    pub fn call(
        &mut self,
        acquire: super::Acquire,
    ) -> (super::Acquire, Option<Result<super::Permit, super::AcquireError>>) {
        let mut acquire = acquire.with_arrival(self.call_arrival());
        let arrived = acquire.arrive();
        self.end_turn();
        (acquire, arrived)
    }
}

impl KeyGate {
    fn new(key_ref: KeyRef, entry: Arc<Entry>, is_spending_key: bool) -> Self {
        let state = GateState::Idle;
        Self {
            key_ref,
            entry,
            is_spending_key,
            state,
            timer: None,
            refreshing: None,
            asked_at: None,
        }
    }

    fn poll_open(
        &mut self,
        query: &Query<'_>,
        turn: &mut Option<Turn>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if let GateState::Open { .. } = self.state {
            return Poll::Ready(());
        }
        loop {
            if let Some(refreshing) = &mut self.refreshing {
                std::task::ready!(refreshing.get_mut().as_mut().poll(cx));
                (self.refreshing, self.asked_at) = (None, Some(self.entry.core.clock.now()));
            }
            let until = match self.check(query, turn, cx.waker()) {
                Check::Open => {
                    self.timer = None;
                    return Poll::Ready(());
                }
                Check::Ask(refreshing) => {
                    self.refreshing = Some(Mutex::new(refreshing));
                    continue;
                }
                Check::Shut(None) => return Poll::Pending,
                Check::Shut(Some(until)) => until,
            };
            if self.timer.as_ref().is_none_or(|(set, _)| *set != until) {
                let clock = &self.entry.core.clock;
                self.timer = Some((until, clock.sleep_until(until)));
            }
            let (_, sleep) = self.timer.as_mut().expect("was set above");
            std::task::ready!(sleep.as_mut().poll(cx));
            self.timer = None;
        }
    }

    fn check(&mut self, query: &Query<'_>, turn: &mut Option<Turn>, waker: &Waker) -> Check {
        let Self { key_ref, entry, is_spending_key, state, .. } = self;
        let mut key = entry.lock();
        while key.is_retired() {
            // Its buckets count under another key by now.
            drop(key);
            key_ref.unlist(entry);
            let Ok(found) = key_ref.entry() else { return Check::Open };
            (*entry, *state) = (found, GateState::Idle);
            key = entry.lock();
        }
        key.is_spending_key = *is_spending_key;
        let (core, now) = (&entry.core, key.now());
        let since = match *state {
            GateState::Queued { since, polls_by } => {
                let contains = |turn| key.queue().is_some_and(|queue| queue.contains(turn));
                if !turn.is_some_and(contains) {
                    *state = GateState::Open { at: now };
                    if !is_absent(polls_by, now) {
                        return Check::Open;
                    }
                }
                since
            }
            GateState::Shut { since } => since,
            GateState::Idle | GateState::Open { .. } => now,
        };
        let typical = key.full_plan().clip(query.typical);
        let typical = if *is_spending_key { typical.money() } else { typical };
        if let Some(backend) = core.backend.as_ref().filter(|_| !core.is_closed()) {
            let look = gate_of_backend::look(backend, &key, &typical, self.asked_at);
            *state = GateState::Idle;
            let (denial, until) = match look {
                Look::Ask(refreshing) => {
                    *state = GateState::Shut { since };
                    return Check::Ask(refreshing);
                }
                Look::Denied(denial, until) if query.shut(&key, denial, since).is_some() => {
                    (denial, until)
                }
                Look::Denied(..) | Look::Open => return Check::Open,
            };
            *state = GateState::Shut { since };
            let long_wait = long_wait::note(&mut key, denial, query.typical, since, true);
            drop(key);
            long_wait.iter().for_each(|refused| long_wait::log(refused, core));
            return Check::Shut(Some(until));
        }
        let denial = match (key.check_limits(&typical, now), *state) {
            _ if !core.is_fast() => None,
            (Ok(()), GateState::Idle | GateState::Open { .. }) => {
                // A gate that waits at another key has a number, and may go before those that wait here.
                let turn = turn.unwrap_or_else(|| query.standing.gate_turn(u64::MAX));
                key.check_turn(turn, false, false, &typical)
            }
            (Ok(()), _) => Some(Denial::OthersWaiting(Wait::Unknown)),
            (Err(denial), _) => Some(denial),
        };
        let Some((denial, ends)) = denial.and_then(|denial| query.shut(&key, denial, since)) else {
            if let GateState::Queued { .. } = *state {
                *state = GateState::Idle;
                turn.iter().for_each(|&turn| key.leave(turn));
            }
            return Check::Open;
        };
        let turn = *turn.get_or_insert_with(|| query.standing.gate_turn(core.next_arrival()));
        let service = query.standing.gate_service(key.plan(), &typical, core);
        let terms = GateTerms { cost: typical.clone(), leaves_claim: query.leaves_claim };
        key.enter_gate(turn, service, terms, waker);
        let polls_by = key.on_polled(turn, Some(&typical).filter(|_| core.is_local()));
        // While the queue is quiet it is polled later, but expected by then once others do something.
        let period = key.queue().map_or(poll_period(0, 0), |queue| queue.period(turn));
        *state = GateState::Queued { since, polls_by: now + period };
        // Gates behind the first waiter check a little later, in case the first is no longer polled: the
        // later the more there are, so that a thousand gates cost little.
        let rank = key.queue().and_then(|queue| queue.rank_in_flow(turn)).unwrap_or_default();
        let late =
            LATE.saturating_mul(u32::try_from(rank.saturating_mul(rank)).unwrap_or(u32::MAX));
        let due = key.gates_due().map(|due| due.max(now) + late);
        let is_first = key.queue().and_then(WaitQueue::head) == Some(turn);
        let long_wait = long_wait::note(&mut key, denial, query.typical, since, is_first);
        let long_at = long_wait::due(&key, since).filter(|_| is_first);
        drop(key);
        long_wait.iter().for_each(|refused| long_wait::log(refused, core));
        Check::Shut([due, ends, polls_by, long_at].into_iter().flatten().min())
    }

    /// Leaves the queue. If its turn has come, even without a poll since then, this ends its claim.
    fn leave(&mut self, turn: Turn, is_called: bool) {
        if !matches!(std::mem::replace(&mut self.state, GateState::Idle), GateState::Idle) {
            let mut key = self.entry.lock();
            key.leave(turn);
            key.end_claim(turn.arrival(), is_called);
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.iter().map(|key| &key.key_ref.key).collect();
        f.debug_struct("Gate").field("keys", &keys).finish_non_exhaustive()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.leave(false);
    }
}

impl Query<'_> {
    /// Returns why the gate of a key stays shut, which has waited since this time, and until when: `None` if it opens
    /// because the request itself gets the error.
    fn shut(
        &self,
        key: &Locked<'_>,
        denial: Denial,
        since: Timestamp,
    ) -> Option<(Denial, Option<Timestamp>)> {
        let own = key.plan().terms.longest_wait().filter(|_| self.keeps_max_wait);
        let patience = self.patience.into_iter().chain(own).min();
        let ends = patience.map(|patience| since + patience);
        let waits = match (denial.wait(), ends) {
            _ if ends.is_some_and(|ends| ends <= key.now()) => false,
            _ if matches!(denial, Denial::OthersWaiting(_)) => true,
            (Wait::Never, _) | (Wait::Unknown, Some(_)) => false,
            (Wait::At(time), Some(ends)) => time <= ends,
            (_, None) => true,
        };
        waits.then_some((denial, ends))
    }
}

/// The time after its gate was open in which a call takes the gate's turn.
const TURN_TIME: Duration = Duration::from_millis(50);

/// The time by which the second gate of a queue checks later than the first; the others later by the
/// square of their rank.
const LATE: Duration = Duration::from_micros(2);
