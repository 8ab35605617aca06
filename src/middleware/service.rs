use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tower_service::Service;

use super::classify::{Classified, Classify};
use super::error::RateLimitError;
use super::future::ResponseFuture;
use super::layer::Settings;
use super::observe::Observe;
use crate::limiter::{Acquire, Gate};

/// A service that keeps to its limits; made by [`RateLimitLayer`](super::RateLimitLayer).
pub struct RateLimitService<S, C, O> {
    inner: S,
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
        let Some(key) = &options.key else { return Poll::Ready(()) };
        if self.gate.is_none() {
            self.gate = limiter.gate(&[key]).ok();
        }
        // A key that is refused outright is told so by `call`.
        let Some(gate) = &mut self.gate else { return Poll::Ready(()) };
        gate.poll_open(&learned.typical(), options.max_wait, cx)
    }

    /// The request's own deadline and the layer's bound both count.
    fn acquire(&self, classified: &Classified) -> Acquire {
        let Settings { limiter, options, .. } = &*self.shared;
        let acquire = limiter.acquire(&classified.key, &classified.cost);
        let bound = options.max_wait.map(|wait| {
            let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
            limiter.now().saturating_add(nanos)
        });
        match [classified.deadline, bound].into_iter().flatten().min() {
            Some(deadline) => acquire.deadline(deadline),
            None => acquire,
        }
    }
}

impl<S, C, O, Request> Service<Request> for RateLimitService<S, C, O>
where
    S: Service<Request> + Clone,
    S::Error: 'static,
    C: Classify<Request>,
    O: Observe<S::Response>,
{
    type Response = O::Observed;
    type Error = RateLimitError<S::Error>;
    type Future = ResponseFuture<S, Request, C, O>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if !self.open {
            ready!(self.poll_gate(cx));
            self.open = true;
        }
        self.inner.poll_ready(cx).map_err(RateLimitError::Inner)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.open = false;
        let key = self.shared.options.key.as_deref();
        let classified = self.shared.classify.classify(&request, key);
        if key.is_some() {
            self.shared.learned.learn(&classified.cost);
        }
        let acquire = self.acquire(&classified);
        let shared = Arc::clone(&self.shared);
        ResponseFuture::new(acquire, &mut self.inner, request, classified, shared)
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
