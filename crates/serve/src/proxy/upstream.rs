use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response};
use http_body::Body as _;
use tower::ServiceExt;
use tower_layer::Layer;

use super::base_url::BaseUrl;
use super::client::{Client, RequestBody, count_attempts};
use super::error_format::ErrorFormat;
use super::key_sources::KeySources;
use crate::app::App;
use crate::config::{self, ServeMode};
use crate::problem::Problem;
use paceline::limiter::Limiter;
use paceline::middleware::{
    Classified, Http, PeekBody, RateLimitError, RateLimitLayer, Replay, RetryService, Unsent,
    request_usage,
};
use paceline::provider::{Profile, UnreadableRequest};
use paceline_limiter::seam;

/// An upstream that requests are forwarded to.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) base: BaseUrl,
    pub(super) format: ErrorFormat,
    profile: Profile,
    key_sources: KeySources,
    limiter: Limiter,
    client: Client,
    /// True if the middleware retries transient failures.
    has_retries: bool,
    /// The maximum length of a body that is kept for another attempt, in bytes.
    max_kept: u64,
    limited: RetryService<Client, FromExtensions, Http>,
}

/// The classifier of the middleware, which returns the earlier classification.
type FromExtensions = fn(&Request<RequestBody>) -> Classified;

impl Upstream {
    /// Creates an upstream; `None` for an invalid URL, which the configuration rejects.
    pub(super) fn new(
        upstream: &config::Upstream,
        app: &App,
        limiter: &Limiter,
        client: &Client,
    ) -> Option<Self> {
        // Clients beyond the limiter's bound get an answer instead of waiting for `poll_ready`.
        let layer = RateLimitLayer::new(limiter.clone()).max_waiting(usize::MAX);
        let App { config, serve, .. } = app;
        let layer = layer.provider(upstream.profile).prices(config.prices.clone());
        let layer = match (serve.mode, app.max_wait()) {
            (ServeMode::Reject, _) => layer.reject(),
            (ServeMode::Wait, Some(wait)) => layer.max_wait(wait),
            (ServeMode::Wait, None) => layer,
        };
        let layer = layer
            .classify(from_extensions as FromExtensions)
            .retry(config.retry.attempts.get() - 1);
        Some(Self {
            name: upstream.name.clone(),
            base: BaseUrl::of(&upstream.base_url)?,
            format: ErrorFormat::of(upstream.profile),
            profile: upstream.profile,
            key_sources: KeySources::new(
                upstream.profile,
                &serve.scopes,
                upstream.default_model.as_deref(),
            ),
            limiter: limiter.clone(),
            client: client.clone(),
            max_kept: serve.bounds.buffered as u64 / MAX_KEPT_DIVISOR,
            has_retries: config.retry.attempts.get() > 1,
            limited: layer.layer(client.clone()),
        })
    }

    /// Returns the keys and the cost of a request, if it is charged, and the reason if its model cannot
    /// be determined.
    ///
    /// # Errors
    /// Returns a [`Problem`] for keys that can't be determined.
    pub(super) fn classify(
        &self,
        request: &Request<RequestBody>,
    ) -> Result<Option<(Classified, Option<UnreadableRequest>)>, Problem> {
        let has_body = request.body().size() != Some(0);
        let is_charged =
            is_charged(request.method(), has_body) || self.needs_price(request, has_body);
        is_charged.then(|| self.key_sources.classify(request, &self.limiter)).transpose()
    }

    /// Removes the headers of scopes, which concern only this server.
    pub(super) fn remove_scope_headers(&self, headers: &mut HeaderMap) {
        self.key_sources.remove_headers(headers);
    }

    /// Returns true if spending is limited and the provider isn't known not to bill the request.
    fn needs_price(&self, request: &Request<RequestBody>, has_body: bool) -> bool {
        seam::limits_spending(&self.limiter)
            && !self.profile.is_free(request.method(), request.uri().path(), has_body)
    }

    /// Requests the usage of a stream that would have none. Returns true if the request was changed.
    pub(super) fn request_usage(&self, request: &mut Request<RequestBody>) -> bool {
        self.profile.states_usage_on_request(request.uri().query()) && request_usage(request)
    }

    /// Sends a request as soon as its limits allow, and retries failures that permit it. Also returns the
    /// number of attempts.
    pub(super) async fn send(
        &self,
        mut request: Request<RequestBody>,
        classified: Option<Classified>,
    ) -> (Result<Response<Body>, RateLimitError>, u32) {
        let is_limited = classified.is_some();
        if let Some(classified) = classified {
            request.extensions_mut().insert(classified);
        }
        // The middleware's retries need no other copy, and a long body is released once it is sent.
        let is_short = request.body().size_hint().upper().is_some_and(|most| most <= self.max_kept);
        let keep = is_short && !(is_limited && self.has_retries);
        count_attempts(async {
            let mut resends = if keep { MAX_RESENDS } else { 0 };
            loop {
                let kept = if resends > 0 { request.replay() } else { None };
                match (self.send_once(request, is_limited).await, kept) {
                    (Err(RateLimitError::Inner(error)), Some(kept)) if error.is::<Unsent>() => {
                        (request, resends) = (kept, resends - 1);
                    }
                    (sent, _) => return sent,
                }
            }
        })
        .await
    }

    async fn send_once(
        &self,
        request: Request<RequestBody>,
        is_limited: bool,
    ) -> Result<Response<Body>, RateLimitError> {
        if is_limited {
            return Ok(self.limited.clone().oneshot(request).await?.map(Body::new));
        }
        let response = self.client.clone().oneshot(request).await;
        Ok(response.map_err(RateLimitError::Inner)?.map(Body::new))
    }
}

/// Returns true if the provider's limits may count a request, unlike a list of models. A server may treat
/// any method like a POST if there is a body.
fn is_charged(method: &Method, has_body: bool) -> bool {
    has_body || !UNCHARGED_METHODS.contains(method)
}

/// How often a request is sent again that the upstream can't have read: its idle connections end together.
const MAX_RESENDS: u32 = 4;

/// The divisor of the budget for bodies that are kept until their response begins.
const MAX_KEPT_DIVISOR: u64 = 1_024;

/// Returns the earlier classification.
fn from_extensions(request: &Request<RequestBody>) -> Classified {
    let classified = request.extensions().get::<Classified>();
    classified.cloned().expect("a request is classified before it is sent")
}

/// Methods that do not run a model, if there is no body.
const UNCHARGED_METHODS: [Method; 4] = [Method::GET, Method::HEAD, Method::OPTIONS, Method::DELETE];
