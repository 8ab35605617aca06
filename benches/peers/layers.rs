//! The services that the layer is compared with, with the same limits.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use governor::middleware::RateLimitingMiddleware;
use http::{Request, Response};
use pin_project::pin_project;
use tower::Service;
use tower_governor::governor::{Governor, GovernorConfig, GovernorConfigBuilder};
use tower_governor::key_extractor::KeyExtractor;
use tower_governor::{GovernorError, GovernorLayer};

use super::map::Map;

/// A hand-written service that checks a [`Map`].
#[derive(Clone)]
pub(crate) struct MapService<S> {
    inner: S,
    map: Arc<Map>,
    key: &'static str,
    settles: bool,
}

impl<S> MapService<S> {
    /// Creates the service. With `settles`, it accesses the map a second time on each response.
    pub(crate) fn new(inner: S, burst: f64, key: &'static str, settles: bool) -> Self {
        Self { inner, map: Arc::new(Map::new(burst)), key, settles }
    }
}

impl<S: Service<R>, R> Service<R> for MapService<S> {
    type Response = S::Response;
    type Error = Result<S::Error, Duration>;
    type Future = MapFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Ok)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let settling = self.settles.then(|| (Arc::clone(&self.map), self.key));
        match self.map.take(self.key, 50.0) {
            Ok(()) => MapFuture::Sent(self.inner.call(request), settling),
            Err(wait) => MapFuture::Refused(wait),
        }
    }
}

#[pin_project(project = Projection)]
pub(crate) enum MapFuture<F> {
    Sent(#[pin] F, Option<(Arc<Map>, &'static str)>),
    Refused(Duration),
}

impl<F: Future<Output = Result<T, E>>, T, E> Future for MapFuture<F> {
    type Output = Result<T, Result<E, Duration>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projection::Sent(future, settling) => {
                let result = ready!(future.poll(cx));
                if let Some((map, key)) = settling.take() {
                    map.settle(key, 0.0);
                }
                Poll::Ready(result.map_err(Ok))
            }
            Projection::Refused(wait) => Poll::Ready(Err(Err(*wait))),
        }
    }
}

/// The key extractor for tower_governor: the tenant in a header.
#[derive(Clone)]
pub(crate) struct Tenant;

impl KeyExtractor for Tenant {
    type Key = String;

    fn extract<T>(&self, request: &Request<T>) -> Result<String, GovernorError> {
        let tenant = request.headers().get("x-tenant").and_then(|tenant| tenant.to_str().ok());
        tenant.map(str::to_owned).ok_or(GovernorError::UnableToExtractKey)
    }
}

type Answer = Response<axum::body::Body>;

/// Returns a tower_governor service with one limit, which never refuses if `is_ample` is set, and otherwise
/// admits only the first request.
pub(crate) fn tower_governor<S, R>(
    inner: S,
    is_ample: bool,
) -> Governor<Tenant, governor::middleware::NoOpMiddleware, S, axum::body::Body>
where
    S: Service<Request<R>, Response = Answer>,
{
    limited(inner, finish(&mut builder(is_ample)))
}

/// Returns the same service with `x-ratelimit-limit` and `x-ratelimit-remaining` in its responses.
pub(crate) fn tower_governor_headers<S, R>(
    inner: S,
    is_ample: bool,
) -> Governor<Tenant, governor::middleware::StateInformationMiddleware, S, axum::body::Body>
where
    S: Service<Request<R>, Response = Answer>,
{
    limited(inner, finish(&mut builder(is_ample).use_headers()))
}

type Plain = GovernorConfigBuilder<Tenant, governor::middleware::NoOpMiddleware>;

fn builder(is_ample: bool) -> Plain {
    let mut builder = GovernorConfigBuilder::default().key_extractor(Tenant);
    match is_ample {
        true => builder.period(Duration::from_nanos(1)).burst_size(u32::MAX),
        false => builder.period(Duration::from_secs(3_600)).burst_size(1),
    };
    builder
}

fn finish<M>(builder: &mut GovernorConfigBuilder<Tenant, M>) -> GovernorConfig<Tenant, M>
where
    M: RateLimitingMiddleware<governor::clock::QuantaInstant>,
{
    builder.finish().expect("above zero")
}

fn limited<S, M>(
    inner: S,
    config: GovernorConfig<Tenant, M>,
) -> Governor<Tenant, M, S, axum::body::Body>
where
    M: RateLimitingMiddleware<governor::clock::QuantaInstant>,
{
    tower::Layer::layer(&GovernorLayer::new(config), inner)
}
