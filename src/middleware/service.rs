use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tower_service::Service;

use super::classify::Classify;
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
            self.gate = limiter.key(key).map(|handle| handle.gate());
        }
        // A key that is refused outright is told so by `call`.
        let Some(gate) = &mut self.gate else { return Poll::Ready(()) };
        gate.poll_open(&learned.typical(), options.max_wait, cx)
    }

    fn acquire(&self, key: &str, cost: &crate::quota::Cost, deadline: Option<u64>) -> Acquire {
        let Settings { limiter, options, .. } = &*self.shared;
        let mut acquire = limiter.acquire(key, cost);
        if let Some(deadline) = deadline {
            acquire = acquire.deadline(deadline);
        } else if let Some(wait) = options.max_wait {
            acquire = acquire.max_wait(wait);
        }
        acquire
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
        self.shared.learned.learn(&classified.cost);
        let acquire = self.acquire(&classified.key, &classified.cost, classified.deadline);
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

impl<S: fmt::Debug, C, O> fmt::Debug for RateLimitService<S, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("inner", &self.inner)
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
