use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use http::Extensions;
use parking_lot::{Mutex, MutexGuard};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next};
use tower_layer::Layer;
use tower_service::Service;

use super::classify::{Classified, Classify};
use super::error::RateLimitError;
use super::http::Http;
use super::include_usage::{IncludeUsageLayer, ask_for_usage};
use super::layer::{RateLimitLayer, Retries};
use super::observe::Observe;
use super::retry::{Judge, Replay};

/// A request on its way through a chain of reqwest-middleware, with the extensions that go with it.
pub struct ChainedRequest<'a> {
    request: Request,
    extensions: Beside<'a>,
}

/// The extensions that all tries of a request share: here, or with the try that is on its way.
type Beside<'a> = Arc<Mutex<Option<&'a mut Extensions>>>;

impl<'a> ChainedRequest<'a> {
    fn new(request: Request, extensions: &'a mut Extensions) -> Self {
        Self { request, extensions: Arc::new(Mutex::new(Some(extensions))) }
    }

    /// The request itself.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// What was put beside it by `with_extension`, and by the links of the chain before this one.
    pub fn extensions(&self) -> impl Deref<Target = Extensions> + '_ {
        MutexGuard::map(self.extensions.lock(), |beside| beside.as_deref_mut().expect(ONE_TRY))
    }
}

impl Replay for ChainedRequest<'_> {
    fn replay(&self) -> Option<Self> {
        let extensions = Arc::clone(&self.extensions);
        self.request.try_clone().map(|request| Self { request, extensions })
    }
}

impl fmt::Debug for ChainedRequest<'_> {
    /// Without its headers, query and body: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainedRequest")
            .field("method", self.request.method())
            .field("path", &self.request.url().path())
            .finish_non_exhaustive()
    }
}

impl Classify<ChainedRequest<'_>> for Http {
    /// As without a chain; the extensions are those that go with the request.
    fn classify(&self, chained: &ChainedRequest<'_>, key: Option<&str>) -> Classified {
        self.classify(&chained.request, key).with_extensions(&chained.extensions())
    }
}

/// The layer as a link of a chain: what comes after it is the service inside.
///
/// Put it after `reqwest-retry`, so that each attempt waits for its turn and is charged:
///
/// ```no_run
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
/// use tollgate::provider::OPENAI;
/// use tollgate::{Limiter, RateLimitLayer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::builder().provider(OPENAI).build()?;
/// let retries = ExponentialBackoff::builder().build_with_max_retries(3);
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(RetryTransientMiddleware::new_with_policy(retries))
///     .with(RateLimitLayer::new(limiter))
///     .build();
/// # Ok(())
/// # }
/// ```
///
/// A request that the limiter refuses is an `Error::Middleware` with the [`RateLimitError`] inside,
/// which [`find_refusal`](super::find_refusal) finds again whatever it was wrapped into;
/// `reqwest-retry` by default takes it for fatal, and doesn't send again. An error of what comes
/// after passes as it is, so that `reqwest-retry` sees what it sees without this link.
///
/// An [`Ask`](super::Ask) and a [`Journey`](super::Journey) go into the extensions (`with_extension`). Of several attempts it tells the last.
///
/// With [`retry`](RateLimitLayer::retry) it needs no `reqwest-retry`: it sends again itself, through
/// the links that come after it.
#[async_trait]
impl<C, O> Middleware for RateLimitLayer<C, O>
where
    C: for<'a> Classify<ChainedRequest<'a>> + Send + Sync + 'static,
    O: Observe<Response, Observed = Response> + Send + Sync + 'static,
{
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response, Error> {
        let sent = send(self.layer(Rest(next)), ChainedRequest::new(request, extensions)).await;
        sent.map_err(unwrapped)
    }
}

#[async_trait]
impl<C, O> Middleware for RateLimitLayer<C, O, Retries>
where
    C: for<'a> Classify<ChainedRequest<'a>> + Send + Sync + 'static,
    O: Judge<Response, Observed = Response, Judging: Send> + Send + Sync + 'static,
{
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response, Error> {
        let sent = send(self.layer(Rest(next)), ChainedRequest::new(request, extensions)).await;
        sent.map_err(unwrapped)
    }
}

#[async_trait]
impl Middleware for IncludeUsageLayer {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response, Error> {
        ask_for_usage(&mut request);
        next.run(request, extensions).await
    }
}

/// Boxed, because the compiler can't see that the future of a service over borrows is `Send`.
fn send<'a, S>(mut service: S, request: ChainedRequest<'a>) -> Sending<'a, RateLimitError>
where
    S: Service<ChainedRequest<'a>, Response = Response, Error = RateLimitError>,
    S::Future: Send + 'a,
{
    // What comes next is always ready, and a request that is here stands in its queue rather than
    // at the gate, so `poll_ready` has nothing to say.
    Box::pin(service.call(request))
}

/// An error of what comes after as it is.
fn unwrapped(error: RateLimitError) -> Error {
    error.into_inner().unwrap_or_else(Error::middleware)
}

type Sending<'a, E> = Pin<Box<dyn Future<Output = Result<Response, E>> + Send + 'a>>;

/// The links that come after ours, and the client.
#[derive(Clone)]
struct Rest<'a>(Next<'a>);

impl<'a> Service<ChainedRequest<'a>> for Rest<'a> {
    type Response = Response;
    type Error = Error;
    type Future = Sending<'a, Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ChainedRequest { request, extensions }: ChainedRequest<'a>) -> Self::Future {
        let next = self.0.clone();
        Box::pin(async move {
            let beside = extensions.lock().take().expect(ONE_TRY);
            let sent = next.run(request, &mut *beside).await;
            *extensions.lock() = Some(beside);
            sent
        })
    }
}

const ONE_TRY: &str = "the tries of a request come one after the other";
