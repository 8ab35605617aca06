use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;
use tokio::task::coop;

use super::admission;
use super::permit::Permit;
use super::request::{Request, Verdict};
use super::scopes::{Blocked, Scopes};
use super::table::Name;
use super::waiting::{Arrival, Look, NEWCOMER, Waiting};
use crate::answer::error::{AcquireError, Refused};
use crate::backend::{Ending, Reservation, Reserving};
use crate::clock::Sleep;
use crate::event::Metadata;
use crate::key::denial::Denial;
use crate::plan::DefaultLimits;
use crate::quota::{Cost, Quota};
use crate::timestamp::Timestamp;

/// A future of a reservation, granted in order of arrival.
///
/// It arrives when it is first polled, or with [`arrive`](Self::arrive).
///
/// Each result takes one unit of the tokio task's [cooperative budget](tokio::task::coop): a task that is
/// granted in a loop yields to the others now and then. A poll without budget reserves nothing.
///
/// # Cancel safety
/// Dropping it at any time gives up its place and hands on. As with any queue, a future that is
/// kept but neither polled nor dropped holds up those behind it.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    request: Request,
    stage: Stage,
    timer: Option<(Timestamp, Sleep)>,
}

/// The states of an acquisition. New -> Waiting -> Done; where a backend keeps the buckets, Waiting
/// and Asking alternate until it has answered. A retired key leads from Waiting back to New.
enum Stage {
    /// It has not arrived.
    New,
    /// It waits in the queue of one of its keys.
    Waiting(Box<Waiting>),
    /// It is the first in its queue, and asks the backend.
    Asking(Box<Asking>),
    /// It was granted or has failed.
    Done,
}

/// A question to a backend.
struct Asking {
    waiting: Box<Waiting>,
    asked: Arc<Reservation>,
    reserving: Reserving,
    /// When the answer is due.
    until: Timestamp,
}

impl Acquire {
    pub(super) fn new(names: SmallVec<[Name; 1]>, cost: Cost) -> Self {
        Self { request: Request::new(names, cost), stage: Stage::New, timer: None }
    }

    pub(super) fn given(mut self, quota: Quota) -> Self {
        self.request.given = Some(Box::new(quota));
        self
    }

    /// Waits no longer than until `time` by the limiter's clock, and
    /// fails with [`AcquireError::DeadlineExceeded`] then, or as soon as it is known that it won't be
    /// granted by then. What fits when it is looked at is granted all the same, even if this future
    /// was polled late.
    pub fn deadline(mut self, time: Timestamp) -> Self {
        self.request.deadline = Some(time);
        self
    }

    /// The same as a deadline `duration` from now.
    pub fn max_wait(self, duration: Duration) -> Self {
        let time = self.request.core().clock.now() + duration;
        self.deadline(time)
    }

    /// Limits for those of its keys that no quota names, in the place of what happens to unknown keys.
    /// They are those of the key until it is forgotten, a quota names it, or a request brings others;
    /// what was used of limits of the same dimension and window stays used. A request that waits is
    /// judged by its own.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::limiter::DefaultLimits;
    /// use tollgate::quota::{Dimension, Limit, Window};
    /// use tollgate::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500)).build()?;
    /// let two_a_second = Limit::new(Dimension::Requests, 2, Window::SECOND).unwrap();
    /// let limits = DefaultLimits::new(&limiter, &Quota::new().limit(two_a_second));
    /// let admit = |key| limiter.acquire(key, &Cost::new()).default_limits(&limits).try_now().is_ok();
    /// assert_eq!([admit("a"), admit("a"), admit("a"), admit("b")], [true, true, false, true]);
    /// assert!((0..100).all(|_| admit("gpt-4o")));
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    pub fn default_limits(mut self, limits: &DefaultLimits) -> Self {
        self.set_default_limits(limits);
        self
    }

    /// The same for a request that may wait already: it keeps its place, and is judged by these when it
    /// is next polled.
    pub fn set_default_limits(&mut self, limits: &DefaultLimits) {
        for name in &mut self.request.names {
            name.default = Some(Arc::clone(&limits.0));
        }
    }

    /// Isn't willing to wait behind more than so many, whatever the limiter's own bound is: it fails with
    /// [`AcquireError::QueueFull`] then. With 0 it doesn't wait at all.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.request.max_waiting = Some(requests);
        self
    }

    /// Makes a refusal carry the figures of its keys, so that they need not be looked up again.
    #[cfg(feature = "tower")]
    pub(crate) fn with_figures(mut self, with_figures: bool) -> Self {
        self.request.with_figures = with_figures;
        self
    }

    /// What the events of this request carry along: its user, its trace. Nothing secret belongs in
    /// here.
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.request.metadata = Some(metadata);
        self
    }

    /// The reservation now, or the reason why not; doesn't wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which it would be granted.
    pub fn try_now(mut self) -> Result<Permit, Refused> {
        let result = self.now();
        if let Err(refused) = &result {
            self.request.report_denied(refused);
        }
        result
    }

    /// Arrives now instead of at the first poll: takes its reservation if nobody waits and it fits,
    /// and else its place in the queue. `Some` is how it has ended; it must not be polled then.
    #[inline]
    pub fn arrive(&mut self) -> Option<Result<Permit, AcquireError>> {
        match self.stage {
            Stage::New => self.newcomer(Waker::noop()),
            _ => None,
        }
        .inspect(|result| self.request.report_failed(result))
    }

    #[inline]
    fn newcomer(&mut self, waker: &Waker) -> Option<Result<Permit, AcquireError>> {
        self.stage = Stage::Done;
        if let Some(permit) = self.try_fast() {
            return Some(Ok(permit));
        }
        match Waiting::arrive(&mut self.request, waker) {
            Arrival::Ended(result) => Some(result),
            Arrival::Queued(waiting) => {
                self.stage = Stage::Waiting(Box::new(waiting));
                None
            }
        }
    }

    /// Takes the fast exit, if the request has one key and no options that need more.
    #[inline]
    fn try_fast(&mut self) -> Option<Permit> {
        let name = self.request.fast_name()?;
        admission::try_fast(name.find()?, &self.request.cost, name.default.as_ref())
    }

    fn now(&mut self) -> Result<Permit, Refused> {
        if let Some(permit) = self.try_fast() {
            return Ok(permit);
        }
        loop {
            let request = &mut self.request;
            let entries = request.entries()?;
            let Some(mut scopes) = request.lock(&entries) else { continue };
            let now = scopes.now();
            match request.judge(&scopes, NEWCOMER) {
                Verdict::Admit => {
                    let taken = scopes.commit(&request.cost);
                    drop(scopes);
                    return Ok(request.granted(taken, None, (now, now)));
                }
                Verdict::Wait(blocked) => return Err(scopes.refused(blocked, &request.cost)),
                Verdict::Fail(AcquireError::Refused(refused)) => return Err(refused),
                Verdict::Fail(_) => {
                    return Err(scopes.refused(Blocked::at(0, Denial::Closed), &request.cost));
                }
                Verdict::Ask => {}
            }
            let asked = request.reservation(&scopes, None);
            let parts = scopes.parts();
            drop(scopes);
            let core = request.core();
            let backend = core.backend.as_ref().expect("only a backend is asked");
            return match core.reserve_here(&asked).unwrap_or_else(|| backend.try_reserve(&asked)) {
                Ok(()) => Ok(request.granted((parts, true), Some(asked), (now, now))),
                Err(unmet) => {
                    let scopes = Scopes::lock(&entries);
                    Err(scopes.refused(Blocked::elsewhere(0, unmet), &request.cost))
                }
            };
        }
    }

    /// Asks the backend, which may know the answer.
    fn ask(&mut self, asked: Arc<Reservation>) -> Option<Look> {
        let core = self.request.core();
        let Some(answer) = core.reserve_here(&asked) else {
            let backend = core.backend.as_ref().expect("only a backend is asked");
            let reserving = backend.reserve(&asked);
            let until = core.clock.now() + backend.patience();
            // Only now: if the backend panics, its place is given up with the rest.
            if let Stage::Waiting(waiting) = std::mem::replace(&mut self.stage, Stage::Done) {
                self.stage = Stage::Asking(Box::new(Asking { waiting, asked, reserving, until }));
            }
            return None;
        };
        match &mut self.stage {
            Stage::Waiting(waiting) => Some(waiting.answered(&mut self.request, asked, answer)),
            _ => None,
        }
    }

    /// Goes on when the backend has answered; until then `Pending`.
    fn poll_asking(&mut self, cx: &mut Context<'_>) -> Poll<Look> {
        let Stage::Asking(asking) = &mut self.stage else {
            unreachable!("only asked while asking");
        };
        let Asking { waiting, asked, reserving, until } = &mut **asking;
        if let Poll::Ready(answer) = reserving.as_mut().poll(cx) {
            let look = waiting.answered(&mut self.request, Arc::clone(asked), answer);
            self.answered();
            return Poll::Ready(look);
        }
        if waiting.is_retired() {
            // The question is taken back, and asked again under the key that has taken its place.
            self.request.arrival = Some(waiting.arrival());
            self.give_up();
            return Poll::Ready(Look::Retired);
        }
        let until = *until;
        let Some(error) = waiting.overdue(&self.request, until) else {
            let deadline = self.request.deadline.map(|deadline| deadline.max(until));
            std::task::ready!(self.poll_timer(deadline, cx));
            return self.poll_asking(cx);
        };
        self.give_up();
        Poll::Ready(Look::Ended(Err(error)))
    }

    fn answered(&mut self) {
        if let Stage::Asking(asking) = std::mem::replace(&mut self.stage, Stage::Done) {
            self.stage = Stage::Waiting(asking.waiting);
        }
    }

    /// Undoes what it has begun.
    fn give_up(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Waiting(mut waiting) => waiting.leave(),
            Stage::Asking(asking) => {
                let Asking { mut waiting, asked, reserving, .. } = *asking;
                drop(reserving);
                if let Some(backend) = &self.request.core().backend {
                    backend.end(&asked, Ending::Released);
                }
                waiting.leave();
            }
            Stage::New | Stage::Done => {}
        }
    }

    /// Sleeps until `time`; ready when it has come.
    fn poll_timer(&mut self, time: Option<Timestamp>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(time) = time else {
            self.timer = None;
            return Poll::Pending;
        };
        if self.timer.as_ref().is_none_or(|(set, _)| *set != time) {
            self.timer = Some((time, self.request.core().clock.sleep_until(time)));
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
        // Before anything is reserved: a poll without budget holds nothing.
        let budget = std::task::ready!(coop::poll_proceed(cx));
        loop {
            let look = match &mut this.stage {
                Stage::New => match this.newcomer(cx.waker()) {
                    Some(result) => Look::Ended(result),
                    None => continue,
                },
                Stage::Waiting(waiting) => waiting.look(&mut this.request, cx.waker()),
                Stage::Asking(..) => std::task::ready!(this.poll_asking(cx)),
                Stage::Done => panic!("an acquisition was polled after it had ended"),
            };
            let look = match look {
                Look::Ask(asked) => match this.ask(asked) {
                    Some(look) => look,
                    None => continue,
                },
                look => look,
            };
            match look {
                Look::Ended(result) => {
                    this.stage = Stage::Done;
                    this.request.report_failed(&result);
                    budget.made_progress();
                    return Poll::Ready(result);
                }
                Look::Ask(_) => unreachable!("was asked above"),
                Look::Retired => this.stage = Stage::New,
                Look::Wait(until) => {
                    let until = until.into_iter().chain(this.request.latest()).min();
                    std::task::ready!(this.poll_timer(until, cx));
                }
            }
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        self.give_up();
        self.request.core().events.flush();
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.request.names.iter().map(|name| &name.key).collect();
        f.debug_struct("Acquire")
            .field("keys", &keys)
            .field("cost", &self.request.cost)
            .field("deadline", &self.request.deadline)
            .finish_non_exhaustive()
    }
}
