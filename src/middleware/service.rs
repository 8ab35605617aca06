use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tower_service::Service;

use super::classify::{Classified, Classify};
use super::error::{BoxError, Failure, RateLimitError};
use super::future::{Arrival, ResponseFuture};
use super::http::Http;
use super::observe::Observe;
use super::queue_slots::SlotWait;
use super::record::Record;
use super::settings::Settings;
use crate::Timestamp;
use crate::limiter::{Acquire, AcquireError, Gate, Limiter, Permit};
use paceline_limiter::seam;

/// A service whose requests are rate limited. Created by [`RateLimitLayer`](super::RateLimitLayer).
///
/// # Panics
/// `poll_ready` panics if it has to wait for a time outside a tokio runtime with timers.
pub struct RateLimitService<S, C = Http, O = Http> {
    pub(super) inner: S,
    shared: Arc<Settings<C, O>>,
    gate: Option<Gate>,
    /// Set while the service waits for a slot.
    slot: Option<Box<SlotWait>>,
    open: bool,
}

impl<S, C, O> RateLimitService<S, C, O> {
    pub(super) fn new(inner: S, shared: Arc<Settings<C, O>>) -> Self {
        Self { inner, shared, gate: None, slot: None, open: false }
    }

    fn poll_gate(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Settings { limiter, options, typical_cost, .. } = &*self.shared;
        if options.keys.is_empty() {
            return Poll::Ready(());
        }
        if self.gate.is_none() {
            let standing = options.standing_of(None);
            let gate = seam::gate_of_service(limiter, &options.keys, standing.as_ref());
            self.gate = gate.ok();
        }
        // If the keys are denied, `call` returns the error.
        let Some(gate) = &mut self.gate else { return Poll::Ready(()) };
        gate.poll_open(&typical_cost.get(), options.max_wait, cx)
    }

    /// Implements `call`, for inner services with any error type.
    #[inline]
    pub(super) fn send<Request>(&mut self, request: Request) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request> + Clone,
        C: Classify<Request>,
        O: Observe<S::Response>,
    {
        let mut classified = self.read(&request);
        let ask_deadline = self.complete(&mut classified);
        let record = Record::start(&self.shared.limiter, &classified);
        let Some(permit) = self.try_fast(&classified, self.is_answered::<Request>()) else {
            let deadline = self.deadline(&classified, ask_deadline);
            return self.send_or_queue(request, classified, record, deadline);
        };
        self.end_turn();
        let (inner, shared) = (&mut self.inner, Arc::clone(&self.shared));
        ResponseFuture::send(permit, &mut classified, record, inner, request, shared)
    }

    /// Implements `call` for a request that is already classified, with its deadline.
    pub(super) fn send_classified<Request>(
        &mut self,
        request: Request,
        mut classified: Classified,
        deadline: Option<Timestamp>,
    ) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request> + Clone,
        O: Observe<S::Response>,
    {
        self.open = false;
        let record = Record::start(&self.shared.limiter, &classified);
        let Some(permit) = self.try_fast(&classified, self.is_answered::<Request>()) else {
            return self.send_or_queue(request, classified, record, deadline);
        };
        self.end_turn();
        let (inner, shared) = (&mut self.inner, Arc::clone(&self.shared));
        ResponseFuture::send(permit, &mut classified, record, inner, request, shared)
    }

    /// Returns whether a provider answers the requests, and its answers are reported to the limiter.
    #[inline]
    fn is_answered<Request>(&self) -> bool
    where
        S: Service<Request>,
        O: Observe<S::Response>,
    {
        O::KEEPS_GUARD && !self.shared.options.is_server_mode
    }

    /// Ends the gate's turn, after the request has arrived.
    #[inline]
    fn end_turn(&mut self) {
        if let Some(gate) = &mut self.gate {
            seam::end_turn(gate);
        }
    }

    /// Reserves the cost of a request with one key, if it fits now. Nearly every request takes this path.
    #[inline]
    fn try_fast(&self, classified: &Classified, is_answered: bool) -> Option<Permit> {
        let [key] = &classified.keys[..] else { return None };
        let Settings { limiter, .. } = &*self.shared;
        seam::try_fast(limiter, key.as_str(), &classified.cost, key.is_model(), is_answered)
    }

    /// Sends the request if it is admitted immediately, and queues it otherwise.
    #[inline(never)]
    fn send_or_queue<Request>(
        &mut self,
        request: Request,
        classified: Classified,
        record: Option<Box<Record>>,
        deadline: Option<Timestamp>,
    ) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request> + Clone,
        O: Observe<S::Response>,
    {
        let acquire = self.acquire(&classified, deadline);
        let acquire = seam::answered_by_provider(acquire, self.is_answered::<Request>());
        let acquire = seam::with_arrival(acquire, self.gate.as_ref().and_then(seam::call_arrival));
        let (inner, shared) = (&mut self.inner, Arc::clone(&self.shared));
        let response = ResponseFuture::arrive(acquire, inner, request, classified, record, shared);
        self.end_turn();
        response
    }

    /// Classifies a request and returns the deadline of its `Ask`.
    pub(super) fn classify<Request>(&self, request: &Request) -> (Classified, Option<Timestamp>)
    where
        C: Classify<Request>,
    {
        let mut classified = self.read(request);
        let ask_deadline = self.complete(&mut classified);
        (classified, ask_deadline)
    }

    #[inline]
    fn read<Request>(&self, request: &Request) -> Classified
    where
        C: Classify<Request>,
    {
        self.shared.classify.classify(request, self.shared.options.key.as_deref())
    }

    /// Applies the request's `Ask`, expected output and the layer's scopes. Returns the deadline of the
    /// `Ask`.
    #[inline]
    fn complete(&self, classified: &mut Classified) -> Option<Timestamp> {
        let Settings { limiter, options, typical_cost, .. } = &*self.shared;
        let ask_deadline = classified.apply_ask();
        classified.use_name_in_quota(limiter);
        classified.use_expected_usage(limiter);
        classified.set_price(limiter, &options.prices);
        classified.waits_for_server = options.waits_for_server;
        if !options.keys.is_empty() {
            typical_cost.update(&classified.cost);
            classified.keys.extend(options.scopes().iter().cloned());
        }
        ask_deadline
    }

    /// Returns the deadline of the `Ask`, or else the earlier of the classified deadline and the one by
    /// the layer's `max_wait`.
    pub(super) fn deadline(
        &self,
        classified: &Classified,
        ask_deadline: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let Settings { limiter, options, .. } = &*self.shared;
        let max_deadline = || options.max_wait.map(|wait| limiter.now() + wait);
        ask_deadline.or_else(|| [classified.deadline, max_deadline()].into_iter().flatten().min())
    }

    fn acquire(&self, classified: &Classified, deadline: Option<Timestamp>) -> Acquire {
        let Settings { limiter, options, .. } = &*self.shared;
        let read_by = classified.call.as_ref().map(|call| call.profile.name());
        let keys = classified.keys.iter();
        let keys = keys.map(|key| (key.as_str(), read_by.filter(|_| key.is_model())));
        let acquire = seam::acquire_scopes(limiter, keys, &classified.cost);
        let standing = options.standing_of(classified.standing.as_deref());
        let acquire = seam::of_layer(acquire, standing, options.is_server_mode);
        match deadline {
            Some(deadline) => acquire.deadline(deadline),
            None => acquire,
        }
    }
}

impl<S: Clone, C, O> RateLimitService<S, C, O> {
    /// Queues another attempt of a request; in front of new ones if the provider refused it.
    pub(super) fn queue_attempt<Request>(
        &self,
        classified: &Classified,
        deadline: Option<Timestamp>,
        is_refused: bool,
    ) -> Result<Arrival, AcquireError>
    where
        S: Service<Request>,
        O: Observe<S::Response>,
    {
        let acquire = self.acquire(classified, deadline);
        let acquire = seam::answered_by_provider(acquire, self.is_answered::<Request>());
        let mut acquire = if is_refused { seam::after_refusal(acquire) } else { acquire };
        match acquire.arrive() {
            Some(granted) => granted.map(Arrival::Granted),
            None => Ok(Arrival::Queued(Box::new(acquire))),
        }
    }

    /// Returns a future that sends the request of such an attempt when it is admitted, through a clone of
    /// the inner service.
    pub(super) fn send_queued<Request>(
        &self,
        arrival: Arrival,
        request: Request,
        classified: Classified,
    ) -> ResponseFuture<S, Request, C, O>
    where
        S: Service<Request>,
    {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        ResponseFuture::from_arrival(arrival, inner, request, classified, shared)
    }

    /// Returns whether a request has to wait alone before it is sent again.
    pub(super) fn waits_alone(&self, classified: &Classified, number: u64) -> bool {
        let feedback = self.shared.limiter.feedback();
        let key = classified.keys.first();
        key.is_none_or(|key| seam::waits_alone(feedback, key.as_str(), number))
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
            ready!(self.shared.slots.poll_free(&mut self.slot, cx));
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
    /// Clones the service. The clone isn't ready, even if this service is.
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.shared))
    }
}

impl<S, C, O> fmt::Debug for RateLimitService<S, C, O> {
    /// Omits the inner service, whose default headers may contain API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
