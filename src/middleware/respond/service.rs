use std::fmt;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::RespondBody;
use super::future::RespondFuture;
use super::reply::Reply;
use crate::middleware::{Classify, RateLimitService};

/// A service that answers requests over the limit itself; created by
/// [`RespondLayer`](super::RespondLayer).
pub struct Respond<S, C>(RateLimitService<S, C, Reply>);

impl<S, C> Respond<S, C> {
    pub(super) fn new(service: RateLimitService<S, C, Reply>) -> Self {
        Self(service)
    }
}

impl<S, C, B, RB> Service<Request<B>> for Respond<S, C>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: 'static,
    C: Classify<Request<B>>,
    RB: Body<Data = Bytes>,
{
    type Response = Response<RespondBody<RB>>;
    type Error = S::Error;
    type Future = RespondFuture<S, Request<B>, C>;

    /// Waits for the inner service only, never for quota.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        RespondFuture::new(self.0.send(request))
    }
}

impl<S: Clone, C> Clone for Respond<S, C> {
    /// Returns a clone, which must be polled ready separately.
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S, C> fmt::Debug for Respond<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Respond").field(&self.0).finish()
    }
}
