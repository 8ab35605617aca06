use std::fmt;
use std::task::{Context, Poll};

use tower_service::Service;

use super::future::RetryFuture;
use super::judge::Judge;
use super::remaining_retries::RemainingRetries;
use super::replay::Replay;
use crate::middleware::{BoxError, Classify, RateLimitError, RateLimitService};
use paceline_limiter::seam;

/// A rate-limited service that retries transient failures; created by
/// [`RateLimitLayer::retry`](crate::middleware::RateLimitLayer::retry).
pub struct RetryService<S, C, O> {
    limited: RateLimitService<S, C, O>,
    retries: u32,
}

impl<S, C, O> RetryService<S, C, O> {
    pub(crate) fn new(limited: RateLimitService<S, C, O>, retries: u32) -> Self {
        Self { limited, retries }
    }
}

impl<S, C, O, Request> Service<Request> for RetryService<S, C, O>
where
    S: Service<Request> + Clone,
    S::Error: Into<BoxError> + 'static,
    C: Classify<Request>,
    O: Judge<S::Response>,
    Request: Replay,
{
    type Response = O::Observed;
    type Error = RateLimitError;
    type Future = RetryFuture<S, Request, C, O>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.limited.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let copy = if self.retries > 0 { request.replay() } else { None };
        let Some(copy) = copy else {
            return RetryFuture::new(self.limited.call(request), None);
        };
        let (mut classified, ask_deadline) = self.limited.classify(&request);
        classified.number = seam::request_number(self.limited.limiter().feedback());
        let deadline = self.limited.deadline(&classified, ask_deadline);
        let (service, journey) = (self.limited.clone(), classified.journey.clone());
        let (number, retries) = (classified.number, self.retries);
        let remaining = RemainingRetries::new(service, copy, number, retries, deadline, journey);
        let first = self.limited.send_classified(request, classified, deadline);
        RetryFuture::new(first, Some(Box::new(remaining)))
    }
}

impl<S: Clone, C, O> Clone for RetryService<S, C, O> {
    /// Returns a clone, which must be polled ready separately.
    fn clone(&self) -> Self {
        Self::new(self.limited.clone(), self.retries)
    }
}

impl<S, C, O> fmt::Debug for RetryService<S, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryService")
            .field("limited", &self.limited)
            .field("retries", &self.retries)
            .finish()
    }
}
