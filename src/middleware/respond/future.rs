use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::RespondBody;
use super::refusal::response;
use super::reply::Reply;
use crate::middleware::ResponseFuture;
use crate::middleware::error::{Failure, RefusedRequest};
use crate::middleware::settings::Settings;

pin_project! {
    /// The future of [`Respond`](super::Respond).
    ///
    /// # Cancel safety
    /// The same as [`ResponseFuture`].
    ///
    /// # Panics
    /// Those of [`ResponseFuture`].
    pub struct RespondFuture<S, Request, C>
    where
        S: Service<Request>,
    {
        #[pin]
        inner: ResponseFuture<S, Request, C, Reply>,
    }
}

impl<S: Service<Request>, Request, C> RespondFuture<S, Request, C> {
    pub(super) fn new(future: ResponseFuture<S, Request, C, Reply>) -> Self {
        Self { inner: future }
    }
}

impl<S, Request, C, RB> Future for RespondFuture<S, Request, C>
where
    S: Service<Request, Response = Response<RB>> + Clone,
    S::Error: 'static,
    RB: Body<Data = Bytes>,
{
    type Output = Result<Response<RespondBody<RB>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut future = self.project().inner;
        Poll::Ready(match ready!(future.as_mut().poll_observed(cx)) {
            Ok(response) => Ok(response),
            Err(Failure::Inner(error)) => Err(error),
            Err(Failure::Limited(refused)) => {
                let Settings { limiter, observe, .. } = &*future.shared;
                let RefusedRequest { error, keys, cost } = &*refused;
                let response = response(limiter, keys, cost, error, Some(&observe.policies));
                Ok(response.map(RespondBody::refusal))
            }
        })
    }
}

impl<S: Service<Request>, Request, C> fmt::Debug for RespondFuture<S, Request, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RespondFuture").field(&self.inner).finish()
    }
}
