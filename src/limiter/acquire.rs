use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::backend::{Ending, Reservation, Reserving};
use super::clock::Sleep;
use super::error::AcquireError;
use super::event::Event;
use super::permit::Permit;
use super::shard::Place;
use super::slot::{Denial, Slot};
use crate::engine::Wait;
use crate::quota::Cost;

/// A reservation that is waited for, in order of arrival.
///
/// It arrives when it is first polled, or with [`arrive`](Self::arrive).
///
/// # Cancel safety
/// Dropping it at any time gives up its place and hands on. As with any queue, a future that is
/// kept but neither polled nor dropped holds up those behind it.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    place: Place,
    cost: Cost,
    deadline: Option<u64>,
    stage: Stage,
    arrived: u64,
    timer: Option<(u64, Sleep)>,
}

enum Stage {
    New,
    Waiting(u64),
    /// The first in the queue asks a backend.
    Asking(u64, Arc<Reservation>, Reserving),
    /// Before it began.
    Failed(AcquireError),
    Done,
}

/// What became of a newcomer.
enum Arrival {
    Ended(Result<Permit, AcquireError>),
    Queued(u64),
}

/// What a look at the queue came to.
enum Turn {
    Ended(Result<Permit, AcquireError>),
    /// In the queue; to be looked at again when woken, or at this time.
    Wait(u64, Option<u64>),
    Ask(u64, Arc<Reservation>),
}

impl Acquire {
    pub(super) fn new(place: Place, cost: Cost) -> Self {
        Self { place, cost, deadline: None, stage: Stage::New, arrived: 0, timer: None }
    }

    /// An acquisition that has failed before it began.
    pub(super) fn failed(place: Place, error: AcquireError) -> Self {
        let mut failed = Self::new(place, Cost::new());
        failed.stage = Stage::Failed(error);
        failed
    }

    /// Waits no longer than until `time` (nanoseconds since the epoch, by the limiter's clock), and
    /// fails with [`AcquireError::DeadlineExceeded`] then, or as soon as it is known that it won't be
    /// granted by then. What fits when it is looked at is granted all the same, even if this future
    /// was polled late.
    pub fn deadline(mut self, time: u64) -> Self {
        self.deadline = Some(time);
        self
    }

    /// The same as a deadline `duration` from now.
    pub fn max_wait(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let time = self.place.shard.core.clock.now().saturating_add(nanos);
        self.deadline(time)
    }

    /// Arrives now instead of at the first poll: takes its reservation if nobody waits and it fits,
    /// and else its place in the queue. `Some` is how it has ended; it must not be polled then.
    pub fn arrive(&mut self) -> Option<Result<Permit, AcquireError>> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::New => match self.newcomer(Waker::noop()) {
                Arrival::Ended(result) => Some(result),
                Arrival::Queued(number) => {
                    self.stage = Stage::Waiting(number);
                    None
                }
            },
            Stage::Failed(error) => Some(Err(error)),
            later => {
                self.stage = later;
                None
            }
        }
    }

    /// Lets a newcomer in if nobody waits and it fits; else gives it its place in the queue.
    fn newcomer(&mut self, waker: &Waker) -> Arrival {
        let core = &self.place.shard.core;
        let (mut keys, now) = self.place.shard.lock();
        self.arrived = now;
        if core.is_closed() {
            return Arrival::Ended(Err(AcquireError::Closed));
        }
        let slot = &mut keys.slots[self.place.slot];
        let waiting = slot.waiting();
        if core.backend.is_none() {
            let fits = match waiting {
                0 => slot.reserve(&self.cost, now),
                _ => slot.fits(&self.cost, now).and(Err(Denial::OthersWaiting)),
            };
            if let Some(error) = self.hopeless(slot, fits, now) {
                return Arrival::Ended(Err(error));
            }
            if fits.is_ok() {
                let (version, open) = (slot.plan.version, slot.plan.holds);
                drop(keys);
                return Arrival::Ended(Ok(self.granted(now, version, open)));
            }
        }
        if waiting >= core.max_waiting {
            let key = slot.key.clone();
            return Arrival::Ended(Err(AcquireError::QueueFull { key, waiting }));
        }
        let line = slot.line();
        let number = line.draw();
        line.queue.push(number, waker);
        Arrival::Queued(number)
    }

    /// Lets a waiter in if it is the first and it fits.
    fn waiter(&self, number: u64, waker: &Waker) -> Turn {
        let core = &self.place.shard.core;
        let (mut keys, now) = self.place.shard.lock();
        let slot = &mut keys.slots[self.place.slot];
        let first = slot.line().queue.is_first(number);
        let mut ended = None;
        let mut until = self.deadline;
        if core.is_closed() {
            ended = Some(Err(AcquireError::Closed));
        } else {
            let fits = match &core.backend {
                _ if !first => Err(Denial::OthersWaiting),
                None => slot.reserve(&self.cost, now),
                Some(_) => slot.cooled(now),
            };
            if core.backend.is_some() && fits.is_ok() {
                let old = slot.line().queue.set_waker(number, waker);
                let reservation = slot.reservation(&self.cost);
                drop(keys);
                drop(old);
                return Turn::Ask(number, reservation);
            }
            match (self.hopeless(slot, fits, now), fits) {
                (Some(error), _) => ended = Some(Err(error)),
                (None, Ok(())) => ended = Some(Ok((slot.plan.version, slot.plan.holds))),
                (None, Err(denial)) => {
                    if let Wait::At(time) = denial.wait() {
                        until = Some(until.map_or(time, |deadline| deadline.min(time)));
                    }
                }
            }
        }
        let Some(ended) = ended else {
            let old = slot.line().queue.set_waker(number, waker);
            drop(keys);
            drop(old);
            return Turn::Wait(number, until);
        };
        let (own, next) = slot.leave_queue(number);
        drop(keys);
        drop(own);
        next.into_iter().for_each(Waker::wake);
        Turn::Ended(ended.map(|(version, open)| self.granted(now, version, open)))
    }

    /// Why waiting on would be in vain, if it would.
    fn hopeless(&self, slot: &Slot, fits: Result<(), Denial>, now: u64) -> Option<AcquireError> {
        let denial = fits.err()?;
        let refused = || slot.refused(denial, &self.cost, now);
        let earliest = match denial.wait() {
            Wait::Never => return Some(AcquireError::Refused(refused())),
            Wait::At(time) => time,
            Wait::Unknown => now,
        };
        let deadline = self.deadline.filter(|&deadline| deadline <= now || deadline < earliest)?;
        Some(AcquireError::DeadlineExceeded { deadline, refused: refused() })
    }

    fn granted(&self, now: u64, version: u32, open: bool) -> Permit {
        let permit = Permit::new(self.place.clone(), self.cost.clone(), now, version, open);
        self.announce(now);
        permit
    }

    fn announce(&self, now: u64) {
        let events = &self.place.shard.core.events;
        events.send(|| Event::Granted { key: self.place.key(), cost: self.cost.clone() });
        if now > self.arrived {
            let duration = Duration::from_nanos(now - self.arrived);
            events.send(|| Event::Waited { key: self.place.key(), duration });
        }
    }

    /// Whether the backend has answered, and what; until then `Pending`.
    fn poll_asking(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let Stage::Asking(number, reservation, reserving) = &mut self.stage else {
            unreachable!("only asked while asking");
        };
        let (number, reservation) = (*number, Arc::clone(reservation));
        let answer = std::task::ready!(reserving.as_mut().poll(cx));
        self.stage = Stage::Waiting(number);
        let now = self.place.shard.core.clock.now();
        match answer {
            Ok(()) => {
                self.leave(number);
                self.announce(now);
                Poll::Ready(Turn::Ended(Ok(Permit::remote(self.place.clone(), reservation, now))))
            }
            Err(wait) => {
                let (mut keys, now) = self.place.shard.lock();
                let slot = &mut keys.slots[self.place.slot];
                let denial = Denial::Elsewhere(wait);
                if let Some(error) = self.hopeless(slot, Err(denial), now) {
                    drop(keys);
                    self.leave(number);
                    return Poll::Ready(Turn::Ended(Err(error)));
                }
                if slot.line().changed {
                    return Poll::Ready(Turn::Ask(number, slot.reservation(&self.cost)));
                }
                let at = if let Wait::At(time) = wait { Some(time) } else { None };
                Poll::Ready(Turn::Wait(number, at.into_iter().chain(self.deadline).min()))
            }
        }
    }

    /// Gives the place in the queue up, and hands on.
    fn leave(&mut self, number: u64) {
        self.stage = Stage::Done;
        let (mut keys, _) = self.place.shard.lock();
        let slot = &mut keys.slots[self.place.slot];
        let (own, next) = slot.leave_queue(number);
        drop(keys);
        drop(own);
        next.into_iter().for_each(Waker::wake);
    }

    /// Sleeps until `time`; ready when it has come.
    fn poll_timer(&mut self, time: Option<u64>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(time) = time else {
            self.timer = None;
            return Poll::Pending;
        };
        if self.timer.as_ref().is_none_or(|(set, _)| *set != time) {
            self.timer = Some((time, self.place.shard.core.clock.sleep_until(time)));
        }
        let (_, sleep) = self.timer.as_mut().expect("was set above");
        std::task::ready!(sleep.as_mut().poll(cx));
        self.timer = None;
        Poll::Ready(())
    }
}

impl Future for Acquire {
    type Output = Result<Permit, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let turn = match &mut this.stage {
                Stage::New => match this.newcomer(cx.waker()) {
                    Arrival::Ended(result) => Turn::Ended(result),
                    Arrival::Queued(number) => {
                        this.stage = Stage::Waiting(number);
                        continue;
                    }
                },
                Stage::Waiting(number) => {
                    let number = *number;
                    this.waiter(number, cx.waker())
                }
                Stage::Asking(..) => std::task::ready!(this.poll_asking(cx)),
                Stage::Failed(error) => Turn::Ended(Err(error.clone())),
                Stage::Done => panic!("an acquisition was polled after it had ended"),
            };
            match turn {
                Turn::Ended(result) => {
                    this.stage = Stage::Done;
                    return Poll::Ready(result);
                }
                Turn::Ask(number, reservation) => {
                    let core = &this.place.shard.core;
                    let backend = core.backend.as_ref().expect("only a backend is asked");
                    let reserving = backend.reserve(&reservation);
                    this.stage = Stage::Asking(number, reservation, reserving);
                }
                Turn::Wait(number, until) => {
                    this.stage = Stage::Waiting(number);
                    std::task::ready!(this.poll_timer(until, cx));
                }
            }
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Waiting(number) => self.leave(number),
            Stage::Asking(number, reservation, _) => {
                if let Some(backend) = &self.place.shard.core.backend {
                    backend.end(&reservation, Ending::Released);
                }
                self.leave(number);
            }
            Stage::New | Stage::Failed(_) | Stage::Done => {}
        }
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("cost", &self.cost)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
