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

/// A request in a chain of reqwest-middleware, with the extensions of the chain.
pub struct ChainedRequest<'a> {
    request: Request,
    extensions: SharedExtensions<'a>,
}

/// The extensions that all attempts of a request share; `None` while an attempt uses them.
type SharedExtensions<'a> = Arc<Mutex<Option<&'a mut Extensions>>>;

impl<'a> ChainedRequest<'a> {
    fn new(request: Request, extensions: &'a mut Extensions) -> Self {
        Self { request, extensions: Arc::new(Mutex::new(Some(extensions))) }
    }

    /// Returns the request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the extensions that `with_extension` and the earlier middleware of the chain have set.
    pub fn extensions(&self) -> impl Deref<Target = Extensions> + '_ {
        MutexGuard::map(self.extensions.lock(), |shared| shared.as_deref_mut().expect(ONE_ATTEMPT))
    }
}

impl Replay for ChainedRequest<'_> {
    fn replay(&self) -> Option<Self> {
        let extensions = Arc::clone(&self.extensions);
        self.request.try_clone().map(|request| Self { request, extensions })
    }
}

impl fmt::Debug for ChainedRequest<'_> {
    /// Omits the headers, query and body, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainedRequest")
            .field("method", self.request.method())
            .field("path", &self.request.url().path())
            .finish_non_exhaustive()
    }
}

impl Classify<ChainedRequest<'_>> for Http {
    /// Classifies the request as outside a chain, and applies the extensions of the chain.
    fn classify(&self, chained: &ChainedRequest<'_>, key: Option<&str>) -> Classified {
        self.classify(&chained.request, key).with_extensions(&chained.extensions())
    }
}

/// Implements the layer as a middleware of reqwest-middleware; the rest of the chain is the inner
/// service.
///
/// Add it after `reqwest-retry`, so that each attempt is queued and charged:
///
/// ```no_run
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
/// use paceline::provider::OPENAI;
/// use paceline::{Limiter, RateLimitLayer};
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
/// If the limiter refuses a request, the chain returns an `Error::Middleware` that contains a
/// [`RateLimitError`]; [`find_refusal`](super::find_refusal) finds it in any chain of causes. By
/// default `reqwest-retry` treats this error as fatal and doesn't retry. Errors of the rest of the
/// chain are returned unchanged, so that `reqwest-retry` handles them as without the layer.
///
/// Set an [`Ask`](super::Ask) or a [`Journey`](super::Journey) with `with_extension`. After several
/// attempts, the journey describes the last one.
///
/// A layer with [`retry`](RateLimitLayer::retry) replaces `reqwest-retry`: it retries through the rest
/// of the chain.
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
        let result =
            send(self.layer(RestOfChain(next)), ChainedRequest::new(request, extensions)).await;
        result.map_err(into_chain_error)
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
        let result =
            send(self.layer(RestOfChain(next)), ChainedRequest::new(request, extensions)).await;
        result.map_err(into_chain_error)
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

/// Calls the service. The future is boxed, since the compiler can't prove that the future of a service
/// over borrowed data is `Send`.
fn send<'a, S>(mut service: S, request: ChainedRequest<'a>) -> ResponseBox<'a, RateLimitError>
where
    S: Service<ChainedRequest<'a>, Response = Response, Error = RateLimitError>,
    S::Future: Send + 'a,
{
    // `poll_ready` isn't called: the rest of the chain is always ready, and the request waits in the
    // queue instead of at the gate.
    Box::pin(service.call(request))
}

/// Returns an error of the rest of the chain unchanged, and wraps a refusal.
fn into_chain_error(error: RateLimitError) -> Error {
    error.into_inner().unwrap_or_else(Error::middleware)
}

type ResponseBox<'a, E> = Pin<Box<dyn Future<Output = Result<Response, E>> + Send + 'a>>;

/// The service of the remaining middleware and the client.
#[derive(Clone)]
struct RestOfChain<'a>(Next<'a>);

impl<'a> Service<ChainedRequest<'a>> for RestOfChain<'a> {
    type Response = Response;
    type Error = Error;
    type Future = ResponseBox<'a, Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ChainedRequest { request, extensions }: ChainedRequest<'a>) -> Self::Future {
        let next = self.0.clone();
        Box::pin(async move {
            let shared = extensions.lock().take().expect(ONE_ATTEMPT);
            let result = next.run(request, &mut *shared).await;
            *extensions.lock() = Some(shared);
            result
        })
    }
}

const ONE_ATTEMPT: &str = "the attempts of a request are sequential";
