use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tower_service::Service;

use super::classify::{Classified, Classify};
use super::error::{BoxError, Failure, RateLimitError};
use super::future::{Arrived, ResponseFuture};
use super::http::Http;
use super::observe::Observe;
use super::record::Record;
use super::settings::Settings;
use crate::limiter::{Acquire, AcquireError, Gate, Limiter, Permit};
use crate::timestamp::Timestamp;

/// A service that keeps within its limits. Created by [`RateLimitLayer`](super::RateLimitLayer).
pub struct RateLimitService<S, C = Http, O = Http> {
    pub(super) inner: S,
    shared: Arc<Settings<C, O>>,
    gate: Option<Gate>,
    open: bool,
}

impl<S, C, O> RateLimitService<S, C, O> {
    pub(super) fn new(inner: S, shared: Arc<Settings<C, O>>) -> Self {
        Self { inner, shared, gate: None, open: false }
    }

    fn poll_gate(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Settings { limiter, options, learned, .. } = &*self.shared;
        if options.keys.is_empty() {
            return Poll::Ready(());
        }
        if self.gate.is_none() {
            self.gate = limiter.gate(&options.keys).ok();
        }
        // A key that is refused outright is told so by `call`.
        let Some(gate) = &mut self.gate else { return Poll::Ready(()) };
        gate.poll_open(&learned.typical(), options.max_wait, cx)
    }

    /// Does the work of `call`, for inner services with any error.
    #[inline]
    pub(super) fn send<Request>(&mut self, request: Request) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request> + Clone,
        C: Classify<Request>,
    {
        let mut classified = self.read(&request);
        let asked = self.complete(&mut classified);
        let record = Record::begin(&self.shared.limiter, &classified);
        let Some(permit) = self.try_fast(&classified) else {
            let deadline = self.deadline(&classified, asked);
            return self.arrive_now(request, classified, record, deadline);
        };
        let (inner, shared) = (&mut self.inner, Arc::clone(&self.shared));
        ResponseFuture::send(permit, &mut classified, record, inner, request, shared)
    }

    /// The same for a request that is classified already, with a deadline that is known.
    pub(super) fn send_by<Request>(
        &mut self,
        request: Request,
        mut classified: Classified,
        deadline: Option<Timestamp>,
    ) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request> + Clone,
    {
        self.open = false;
        let record = Record::begin(&self.shared.limiter, &classified);
        let Some(permit) = self.try_fast(&classified) else {
            return self.arrive_now(request, classified, record, deadline);
        };
        let (inner, shared) = (&mut self.inner, Arc::clone(&self.shared));
        ResponseFuture::send(permit, &mut classified, record, inner, request, shared)
    }

    /// Reserves for a request of one key that fits now, as nearly every request does.
    #[inline]
    fn try_fast(&self, classified: &Classified) -> Option<Permit> {
        let [key] = &classified.keys[..] else { return None };
        self.shared.limiter.try_fast(key.as_str(), &classified.cost)
    }

    /// Sends a request immediately if it is admitted, and else gives it its place in the queue.
    #[inline(never)]
    fn arrive_now<Request>(
        &mut self,
        request: Request,
        classified: Classified,
        record: Option<Box<Record>>,
        deadline: Option<Timestamp>,
    ) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request> + Clone,
    {
        let acquire = self.acquire(&classified, deadline);
        let (inner, shared) = (&mut self.inner, Arc::clone(&self.shared));
        ResponseFuture::arrive(acquire, inner, request, classified, record, shared)
    }

    /// Reads what a request is, and the deadline that it asks for.
    pub(super) fn classify<Request>(&self, request: &Request) -> (Classified, Option<Timestamp>)
    where
        C: Classify<Request>,
    {
        let mut classified = self.read(request);
        let asked = self.complete(&mut classified);
        (classified, asked)
    }

    #[inline]
    fn read<Request>(&self, request: &Request) -> Classified
    where
        C: Classify<Request>,
    {
        self.shared.classify.classify(request, self.shared.options.key.as_deref())
    }

    /// Grants what the request asks for, adds the layer's scopes, and returns the deadline that it
    /// asks for.
    #[inline]
    fn complete(&self, classified: &mut Classified) -> Option<Timestamp> {
        let Settings { limiter, options, learned, .. } = &*self.shared;
        let asked = classified.granted();
        classified.learned_from(limiter);
        if !options.keys.is_empty() {
            learned.learn(&classified.cost);
            classified.keys.extend(options.scopes().iter().cloned());
        }
        asked
    }

    /// What the request asked for counts, or else the earlier of its own deadline and the layer's
    /// bound.
    pub(super) fn deadline(
        &self,
        classified: &Classified,
        asked: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let Settings { limiter, options, .. } = &*self.shared;
        let bound = || options.max_wait.map(|wait| limiter.now() + wait);
        asked.or_else(|| [classified.deadline, bound()].into_iter().flatten().min())
    }

    fn acquire(&self, classified: &Classified, deadline: Option<Timestamp>) -> Acquire {
        let Settings { limiter, options, .. } = &*self.shared;
        let acquire = limiter.acquire_all(&classified.keys, &classified.cost);
        let acquire = acquire.with_figures(options.answers);
        match deadline {
            Some(deadline) => acquire.deadline(deadline),
            None => acquire,
        }
    }
}

impl<S: Clone, C, O> RateLimitService<S, C, O> {
    /// Takes a place in the queue once more, for a request that this service was called with.
    pub(super) fn arrive(
        &self,
        classified: &Classified,
        deadline: Option<Timestamp>,
    ) -> Result<Arrived, AcquireError> {
        let mut acquire = self.acquire(classified, deadline);
        match acquire.arrive() {
            Some(granted) => granted.map(Arrived::Granted),
            None => Ok(Arrived::Queued(Box::new(acquire))),
        }
    }

    /// Sends such a request when it is let in, through a clone of the inner service.
    pub(super) fn send_arrived<Request>(
        &self,
        arrived: Arrived,
        request: Request,
        classified: Classified,
    ) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request>,
    {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        ResponseFuture::arrived(arrived, inner, request, classified, shared)
    }

    pub(super) fn judge(&self) -> &O {
        &self.shared.observe
    }

    pub(super) fn limiter(&self) -> &Limiter {
        &self.shared.limiter
    }
}

impl<S, C, O, Request> Service<Request> for RateLimitService<S, C, O>
where
    S: Service<Request> + Clone,
    S::Error: Into<BoxError> + 'static,
    C: Classify<Request>,
    O: Observe<S::Response>,
{
    type Response = O::Observed;
    type Error = RateLimitError;
    type Future = ResponseFuture<S, Request, C, O>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if !self.open {
            ready!(self.poll_gate(cx));
            self.open = true;
        }
        self.inner.poll_ready(cx).map_err(|error| Failure::Inner(error).into())
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.open = false;
        self.send(request)
    }
}

impl<S: Clone, C, O> Clone for RateLimitService<S, C, O> {
    /// A clone has to become ready by itself.
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.shared))
    }
}

impl<S, C, O> fmt::Debug for RateLimitService<S, C, O> {
    /// Without the inner service: a client shows its default headers, and so API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
