mod asking;
mod backend_call;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;
use tokio::task::coop;

use self::backend_call::BackendCall;
use super::admission;
use super::permit::Permit;
use super::queued_request::{Arrival, Progress, QueuedRequest};
use super::request::{Request, Verdict};
use super::scopes::{Blocker, Scopes};
use super::standing::OwnStanding;
use super::table::KeyRef;
use crate::answer::decision::Decision;
use crate::answer::error::{AcquireError, Refused};
use crate::clock::Sleep;
use crate::event::Metadata;
use crate::key::denial::Denial;
use crate::key::queue::Priority;
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
/// Dropping the future gives up its place in the queue and wakes the next request. The requests behind a
/// future that is neither polled nor dropped pass it after about a second, later if thousands wait, and what it holds
/// at a [`Backend`](super::Backend) is given back; it returns to its place when it is polled.
///
/// # Panics
/// Waiting for a time needs a tokio runtime with timers: a poll outside of one panics, unless the request is
/// granted or refused at once. With a [`ManualClock`](super::ManualClock) it doesn't.
///
/// # Without `.await`
/// Nothing is reserved until the future is polled. The compiler warns of one that is dropped at once, though not of one
/// that is kept in a variable:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// use paceline_limiter::{Cost, Limiter};
/// async fn send(limiter: &Limiter) {
///     limiter.acquire("gpt-4o", &Cost::new());
/// }
/// ```
#[must_use = "nothing is reserved until the future is awaited"]
pub struct Acquire {
    request: Request,
    stage: Stage,
    timer: Option<(Timestamp, Sleep)>,
}

/// The states of the future: New -> Queued -> Done. If a backend keeps the buckets, Queued and Asking
/// alternate until it admits the request. A retired key leads from Queued back to New.
enum Stage {
    /// The request has not joined the queue.
    New,
    /// The request waits in the queue of one of its keys.
    Queued(Box<QueuedRequest>),
    /// The request has left its queue and waits for the backend's answer.
    Asking(Box<BackendCall>),
    /// The request was granted or has failed.
    Done,
}

impl Acquire {
    pub(super) fn new(keys: SmallVec<[KeyRef; 1]>, cost: Cost) -> Self {
        Self { request: Request::new(keys, cost), stage: Stage::New, timer: None }
    }

    /// Sets the limits of its keys for this request, regardless of their quotas and of the limiter's
    /// share.
    ///
    /// A key keeps these limits until it is dropped as idle, a quota is set for exactly this key, or a
    /// request comes with other limits. Usage of limits with the same dimension and window is kept.
    ///
    /// A cost in a dimension that none of the limits counts is refused with
    /// [`Code::MissingLimit`](super::Code::MissingLimit) (one request needs no limit), and so is a limit that never
    /// resets if the limiter has a backend, which wouldn't keep it. A key that is refused as unknown stays refused.
    ///
    /// ```
    /// use paceline_limiter::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().build()?;
    /// let limits = Quota::new().rpm(1);
    /// assert!(limiter.acquire("user:7", &Cost::new()).limits(&limits).try_now().is_ok());
    /// assert!(limiter.acquire("user:7", &Cost::new()).limits(&limits).try_now().is_err());
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
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
    /// against its own limits. With a backend, a limit that never resets is refused with
    /// [`Code::MissingLimit`](super::Code::MissingLimit).
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline_limiter::limiter::DefaultLimits;
    /// use paceline_limiter::quota::{Dimension, Limit, Window};
    /// use paceline_limiter::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500)).build()?;
    /// let two_a_second = Limit::new(Dimension::Requests, 2, Window::SECOND).unwrap();
    /// let limits = DefaultLimits::new(&limiter, &Quota::new().limit(two_a_second));
    /// let admit = |key| limiter.acquire(key, &Cost::new()).default_limits(&limits).try_now().is_ok();
    /// assert_eq!([admit("a"), admit("a"), admit("a"), admit("b")], [true, true, false, true]);
    /// assert!((0..100).all(|_| admit("gpt-4o")));
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    pub fn default_limits(mut self, limits: &DefaultLimits) -> Self {
        self.set_default_limits(limits);
        self
    }

    /// Sets the default limits of a request that may be waiting: it keeps its place in the queue, and is
    /// checked against these limits when it is polled next.
    pub fn set_default_limits(&mut self, limits: &DefaultLimits) {
        self.request.set_default_limits(limits);
    }

    /// Sets the number of requests that this one waits behind at most, in addition to the limiter's own
    /// bound. If more are queued, the request fails with [`AcquireError::QueueFull`]; with 0 it never
    /// waits.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.request.max_waiting = Some(requests);
        self
    }

    /// Marks a request that a provider answers: its answers test the limits of the first key.
    #[inline]
    pub(crate) fn answered_by_provider(mut self, is_answered: bool) -> Self {
        self.request.is_answered = is_answered;
        self
    }

    /// Puts a request that the provider refused before all new requests.
    #[inline]
    pub(crate) fn after_refusal(mut self) -> Self {
        self.request.arrival = Some(self.request.core().next_retry());
        self
    }

    /// Sets the arrival number of a request that takes the turn of its service's gate.
    #[inline]
    pub(crate) fn with_arrival(mut self, arrival: Option<u64>) -> Self {
        self.request.arrival = arrival;
        self
    }

    /// Sets the priority of the request, in place of the one by the limiter's
    /// [`WaitPolicy`](super::WaitPolicy). Of the requests that wait for a key, those with the highest priority
    /// go first.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.request.own_standing.get_or_insert_default().priority = Some(priority);
        self
    }

    /// Sets the flow of the request, such as the user that it is for, in place of the one by the limiter's
    /// [`WaitPolicy`](super::WaitPolicy). While requests wait, flows share the limits of a key by their weights.
    pub fn flow(mut self, name: &str) -> Self {
        self.request.own_standing.get_or_insert_default().flow = Some(name.into());
        self
    }

    /// Sets the priority and the flow that a layer or an HTTP request has, and whether refusals carry the keys' levels.
    #[inline]
    pub(crate) fn of_layer(mut self, own: Option<OwnStanding>, with_levels: bool) -> Self {
        (self.request.own_standing, self.request.with_levels) = (own.map(Box::new), with_levels);
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
        let result = self.reserve_now();
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
        longest.expect("a request has at least one key")
    }

    /// Returns the decision of each key, in the order of the keys.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = Decision> + '_ {
        self.request.keys.iter().map(|key_ref| self.request.decide(key_ref))
    }

    /// Joins the queue now instead of at the first poll: reserves if the cost fits and no request waits,
    /// and takes a place in the queue otherwise.
    ///
    /// Returns `Some` if the request has ended; the future must not be polled then.
    #[inline]
    pub fn arrive(&mut self) -> Option<Result<Permit, AcquireError>> {
        match self.stage {
            Stage::New => self.start(Waker::noop()),
            _ => None,
        }
        .inspect(|result| self.request.report_failed(result))
    }

    /// The same as [`arrive`](Self::arrive), for a new request that the fast path has just not admitted.
    #[inline]
    pub(crate) fn arrive_after_try(&mut self) -> Option<Result<Permit, AcquireError>> {
        self.stage = Stage::Done;
        self.start_slowly(Waker::noop()).inspect(|result| self.request.report_failed(result))
    }

    #[inline]
    fn start(&mut self, waker: &Waker) -> Option<Result<Permit, AcquireError>> {
        self.stage = Stage::Done;
        self.try_fast().map(Ok).or_else(|| self.start_slowly(waker))
    }

    fn start_slowly(&mut self, waker: &Waker) -> Option<Result<Permit, AcquireError>> {
        match QueuedRequest::arrive(&mut self.request, waker) {
            Arrival::Ended(result) => Some(result),
            Arrival::Queued(queued) => {
                self.stage = Stage::Queued(Box::new(queued));
                None
            }
        }
    }

    /// Reserves by the fast path, if the request has one key and no options that need the slow one.
    #[inline]
    fn try_fast(&mut self) -> Option<Permit> {
        let key_ref = self.request.fast_key()?;
        let Request { cost, is_answered, .. } = &self.request;
        let (is_model, default) = (key_ref.read_by.is_some(), key_ref.default_plan.as_ref());
        admission::try_fast(key_ref.find()?, cost, default, is_model, *is_answered)
    }

    fn reserve_now(&mut self) -> Result<Permit, Refused> {
        if let Some(permit) = self.try_fast() {
            return Ok(permit);
        }
        self.request.resolve_standing();
        self.request.is_immediate = true;
        loop {
            let request = &mut self.request;
            let entries = request.entries()?;
            let Some(mut scopes) = request.lock(&entries) else { continue };
            let now = scopes.now();
            match request.judge(&scopes, request.turn(u64::MAX), None) {
                Verdict::Admit => {
                    let reservations = scopes.commit(&request.cost, true);
                    scopes.end_long_waits();
                    drop(scopes);
                    return Ok(request.grant(reservations, None, now, now));
                }
                Verdict::Wait(blocker) => {
                    if let Denial::OthersWaiting(_) = blocker.denial {
                        scopes.iter_mut().for_each(|scope| scope.on_try());
                    }
                    return Err(scopes.refused(blocker, &request.cost));
                }
                Verdict::Fail(AcquireError::Refused(refused)) => return Err(refused),
                Verdict::Fail(_) => {
                    return Err(scopes.refused(Blocker::at(0, Denial::Closed), &request.cost));
                }
                Verdict::Ask => {}
            }
            let reservation = request.reservation(&scopes, None);
            let reservations = scopes.commit(&reservation.cost, false);
            drop(scopes);
            let core = request.core();
            let backend = core.backend.as_ref().expect(HAS_BACKEND);
            return match core
                .reserve_here(&reservation)
                .unwrap_or_else(|| backend.try_reserve(&reservation))
            {
                Ok(()) => Ok(request.grant(reservations, Some(reservation), now, now)),
                Err(error) => {
                    let mut scopes = Scopes::lock(&entries);
                    scopes.take_back(&reservation.cost, now);
                    Err(scopes.refused(Blocker::at_backend(0, error), &request.cost))
                }
            };
        }
    }

    /// Leaves the queue, and cancels a call to the backend.
    fn give_up(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Queued(mut queued) => queued.leave(),
            Stage::Asking(call) => call.cancel(),
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
        let (_, sleep) = self.timer.as_mut().expect("the timer was set above");
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
            let progress = match &mut this.stage {
                Stage::New => match this.start(cx.waker()) {
                    Some(result) => Progress::Ended(result),
                    None => continue,
                },
                Stage::Queued(queued) => queued.check(&mut this.request, cx.waker()),
                Stage::Asking(..) => std::task::ready!(this.poll_asking(cx)),
                Stage::Done => panic!("`Acquire` polled after completion"),
            };
            match progress {
                Progress::Ended(result) => {
                    this.stage = Stage::Done;
                    this.request.report_failed(&result);
                    budget.made_progress();
                    return Poll::Ready(result);
                }
                Progress::Ask(question) => this.ask(question),
                Progress::Retired => this.stage = Stage::New,
                Progress::Wait(until) => {
                    let until = until.into_iter().chain(this.request.next_deadline()).min();
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
        let keys: Vec<_> = self.request.keys.iter().map(|key_ref| &key_ref.key).collect();
        f.debug_struct("Acquire")
            .field("keys", &keys)
            .field("cost", &self.request.cost)
            .field("deadline", &self.request.deadline)
            .finish_non_exhaustive()
    }
}

const HAS_BACKEND: &str = "only a limiter with a backend calls one";
