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
use crate::answer::decision::Decision;
use crate::answer::error::{AcquireError, Refused};
use crate::backend::{Ending, Reservation, Reserving};
use crate::clock::Sleep;
use crate::event::Metadata;
use crate::key::denial::Denial;
use crate::plan::DefaultLimits;
use crate::quota::{Cost, Quota};
use crate::timestamp::Timestamp;

/// A future that waits for a reservation. Returned by [`Limiter::acquire`](super::Limiter::acquire).
///
/// Requests for one key are granted in order of arrival. A request joins the queue when the future is
/// first polled, or with [`arrive`](Self::arrive).
///
/// Each result consumes one unit of the tokio task's [cooperative budget](tokio::task::coop), so that a
/// task that is granted in a loop yields to others. A poll without budget reserves nothing.
///
/// # Cancel safety
/// Dropping the future gives up its place in the queue and wakes the next request. A future that is
/// neither polled nor dropped holds up the requests behind it.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    request: Request,
    stage: Stage,
    timer: Option<(Timestamp, Sleep)>,
}

/// The states of the future. New -> Waiting -> Done; where a backend keeps the buckets, Waiting and
/// Asking alternate until it has answered. A retired key leads from Waiting back to New.
enum Stage {
    /// The request has not joined the queue.
    New,
    /// The request waits in the queue of one of its keys.
    Waiting(Box<Waiting>),
    /// The request is the first of its queue and waits for the backend's answer.
    Asking(Box<Asking>),
    /// The request was granted or has failed.
    Done,
}

/// A reservation that a backend decides about.
struct Asking {
    waiting: Box<Waiting>,
    asked: Arc<Reservation>,
    reserving: Reserving,
    /// The time at which the answer is due.
    until: Timestamp,
}

impl Acquire {
    pub(super) fn new(names: SmallVec<[Name; 1]>, cost: Cost) -> Self {
        Self { request: Request::new(names, cost), stage: Stage::New, timer: None }
    }

    /// Sets the limits of its keys for this request, regardless of their quotas and of the limiter's
    /// share.
    ///
    /// A key keeps these limits until it is dropped as idle, a quota is set for exactly this key, or a
    /// request comes with other limits. Usage of limits with the same dimension and window is kept.
    ///
    /// A cost in a dimension that none of the limits counts is refused with
    /// [`Code::MissingLimit`](super::Code::MissingLimit) (one request needs no limit). A key that is
    /// refused as unknown stays refused.
    ///
    /// ```
    /// use tollgate::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().build()?;
    /// let limits = Quota::new().rpm(1);
    /// assert!(limiter.acquire("user:7", &Cost::new()).limits(&limits).try_now().is_ok());
    /// assert!(limiter.acquire("user:7", &Cost::new()).limits(&limits).try_now().is_err());
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    pub fn limits(mut self, limits: &Quota) -> Self {
        self.request.set_limits(limits);
        self
    }

    /// Sets the time until which the request waits, by the limiter's clock.
    ///
    /// The request fails with [`AcquireError::DeadlineExceeded`] at that time, or as soon as it is known
    /// that it cannot be granted by then. A request that fits when the future is polled is granted, even
    /// if the deadline has passed.
    pub fn deadline(mut self, time: Timestamp) -> Self {
        self.request.deadline = Some(time);
        self
    }

    /// Sets the deadline to `duration` from now.
    pub fn max_wait(self, duration: Duration) -> Self {
        let time = self.request.core().clock.now() + duration;
        self.deadline(time)
    }

    /// Sets the limits of those of its keys that no quota covers, instead of the limiter's policy for
    /// unknown keys.
    ///
    /// A key keeps these limits until it is dropped as idle, a quota covers it, or a request comes with
    /// others. Usage of limits with the same dimension and window is kept. A waiting request is checked
    /// against its own limits.
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

    /// Sets the default limits of a request that may be waiting: it keeps its place in the queue, and is
    /// checked against these limits when it is polled next.
    pub fn set_default_limits(&mut self, limits: &DefaultLimits) {
        for name in &mut self.request.names {
            name.default = Some(Arc::clone(&limits.0));
        }
    }

    /// Sets the number of requests that this one waits behind at most, in addition to the limiter's own
    /// bound. If more are queued, the request fails with [`AcquireError::QueueFull`]; with 0 it never
    /// waits.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.request.max_waiting = Some(requests);
        self
    }

    /// Adds the levels of the keys' limits to a refusal, which saves looking them up again.
    #[cfg(feature = "tower")]
    pub(crate) fn with_figures(mut self, with_figures: bool) -> Self {
        self.request.with_figures = with_figures;
        self
    }

    /// Attaches metadata to the events of this request, such as its user or trace. It must not hold
    /// secrets.
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.request.metadata = Some(metadata);
        self
    }

    /// Reserves immediately, or returns the reason for the refusal; doesn't wait.
    ///
    /// # Errors
    /// [`Refused`], with the time at which the request fits.
    pub fn try_now(mut self) -> Result<Permit, Refused> {
        let result = self.now();
        if let Err(refused) = &result {
            self.request.report_denied(refused);
        }
        result
    }

    /// Checks whether the request would be admitted now, without reserving anything and without changing
    /// the limits of its keys.
    ///
    /// Of several keys, the decision is that of the key with the longest wait.
    pub fn decide(self) -> Decision {
        let longest = self.decisions().reduce(|a, b| if b.wait > a.wait { b } else { a });
        longest.expect("a request has a key")
    }

    /// Returns the decision of each key, in the order of the keys.
    #[doc(hidden)]
    pub fn decisions(&self) -> impl Iterator<Item = Decision> + '_ {
        self.request.names.iter().map(|name| self.request.decide(name))
    }

    /// Joins the queue now instead of at the first poll: reserves if the cost fits and no request waits,
    /// and takes a place in the queue otherwise.
    ///
    /// Returns `Some` if the request has ended; the future must not be polled then.
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

    /// Reserves by the fast path, if the request has one key and no options that need the slow one.
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
                Err(error) => {
                    let scopes = Scopes::lock(&entries);
                    Err(scopes.refused(Blocked::elsewhere(0, error), &request.cost))
                }
            };
        }
    }

    /// Asks the backend. Returns the result if the answer is known without a wait.
    fn ask(&mut self, asked: Arc<Reservation>) -> Option<Look> {
        let core = self.request.core();
        let Some(answer) = core.reserve_here(&asked) else {
            let backend = core.backend.as_ref().expect("only a backend is asked");
            let reserving = backend.reserve(&asked);
            let until = core.clock.now() + backend.patience();
            // Only now: if the backend panics, dropping the future gives up the place in the queue.
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

    /// Polls the backend's answer.
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
            // Cancels the question and asks again under the key that replaced the retired one.
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

    /// Leaves the queue and cancels a question to the backend.
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

    /// Polls a timer for `time`; never ready without a time.
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
        // Before the reservation, so that a poll without budget holds nothing.
        let budget = std::task::ready!(coop::poll_proceed(cx));
        loop {
            let look = match &mut this.stage {
                Stage::New => match this.newcomer(cx.waker()) {
                    Some(result) => Look::Ended(result),
                    None => continue,
                },
                Stage::Waiting(waiting) => waiting.look(&mut this.request, cx.waker()),
                Stage::Asking(..) => std::task::ready!(this.poll_asking(cx)),
                Stage::Done => panic!("`Acquire` polled after completion"),
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
