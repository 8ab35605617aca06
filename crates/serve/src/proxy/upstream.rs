use axum::body::Body;
use axum::http::{Method, Request, Response};
use http_body::Body as _;
use tower::ServiceExt;
use tower_layer::Layer;

use super::base::Base;
use super::client::{Client, RequestBody, counting};
use super::format::Format;
use super::scopes::Scopes;
use crate::app::App;
use crate::config::{self, ServeMode};
use tollgate::limiter::Limiter;
use tollgate::middleware::{
    Classified, Http, PeekBody, RateLimitError, RateLimitLayer, Replay, RetryService, Unsent,
};
use tollgate::provider::UnreadableRequest;

/// A provider that requests are forwarded to.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) base: Base,
    pub(super) format: Format,
    scopes: Scopes,
    client: Client,
    /// Whether requests are sent again that fail in passing.
    retries: bool,
    /// Up to how many bytes a body is kept to be sent once more.
    spare: u64,
    limited: RetryService<Client, Known, Http>,
}

/// Requests are classified before they are handed over.
type Known = fn(&Request<RequestBody>) -> Classified;

impl Upstream {
    /// `None` for one whose URL the configuration would have refused.
    pub(super) fn new(
        upstream: &config::Upstream,
        App { config, serve, .. }: &App,
        limiter: &Limiter,
        client: &Client,
    ) -> Option<Self> {
        let layer = RateLimitLayer::new(limiter.clone()).provider(upstream.profile);
        let layer = match (serve.mode, config.waiting.max_wait) {
            (ServeMode::Reject, _) => layer.reject(),
            (ServeMode::Wait, Some(wait)) => layer.max_wait(wait),
            (ServeMode::Wait, None) => layer,
        };
        let layer = layer.classify(known as Known).retry(config.retry.attempts.get() - 1);
        Some(Self {
            name: upstream.name.clone(),
            base: Base::of(&upstream.base_url)?,
            format: Format::of(upstream.profile),
            scopes: Scopes::new(upstream.profile, &serve.scopes),
            client: client.clone(),
            spare: serve.bounds.buffered as u64 / SPARE,
            retries: config.retry.attempts.get() > 1,
            limited: layer.layer(client.clone()),
        })
    }

    /// What a request is charged to, if it is, and why that can't be read for certain.
    pub(super) fn classify(
        &self,
        request: &Request<RequestBody>,
    ) -> Option<(Classified, Option<UnreadableRequest>)> {
        is_charged(request).then(|| self.scopes.classify(request))
    }

    /// Sends a request once it fits, and again as far as its failures allow; and how often it was sent.
    pub(super) async fn send(
        &self,
        mut request: Request<RequestBody>,
        classified: Option<Classified>,
    ) -> (Result<Response<Body>, RateLimitError>, u32) {
        let is_limited = classified.is_some();
        if let Some(classified) = classified {
            request.extensions_mut().insert(classified);
        }
        // What is retried anyway needs no other copy; a long body is let go of once it is sent.
        let is_short = request.body().size_hint().upper().is_some_and(|most| most <= self.spare);
        let is_kept = is_short && !(is_limited && self.retries);
        let spare = if is_kept { request.replay() } else { None };
        counting(async {
            match (self.send_once(request, is_limited).await, spare) {
                (Err(RateLimitError::Inner(error)), Some(spare)) if error.is::<Unsent>() => {
                    self.send_once(spare, is_limited).await
                }
                (sent, _) => sent,
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

/// Whether a provider's limits may count a request: they count no lists of models and the like. A body
/// may be one that a server takes for a POST, whatever the method.
fn is_charged(request: &Request<RequestBody>) -> bool {
    let has_body = request.body().size() != Some(0);
    has_body || !UNCHARGED.contains(request.method())
}

/// Bodies of up to this part of the room for all of them are kept until their answer begins.
const SPARE: u64 = 1_024;

/// What was found before.
fn known(request: &Request<RequestBody>) -> Classified {
    let classified = request.extensions().get::<Classified>();
    classified.cloned().expect("a request is classified before it is sent")
}

/// Methods by which no model is asked, as long as no body comes with them.
const UNCHARGED: [Method; 4] = [Method::GET, Method::HEAD, Method::OPTIONS, Method::DELETE];
