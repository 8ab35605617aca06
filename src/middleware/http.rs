use crate::quota::Key;
use bytes::Bytes;
use http::Method;
use http_body::Body;

use super::body::ResponseBody;
use super::call::Call;
use super::classify::{Classified, Classify};
use super::forwarding_body::ForwardingBody;
use super::observe::Observe;
use super::peek::PeekBody;
use super::response_guard::ResponseGuard;
use super::retry::{Judge, Judged, Judging};
use super::scope_key::ScopeKey;
use super::server_failure::ServerFailure;
use super::unsent::is_unsent;
use crate::Timestamp;
use crate::provider::{Estimate, Profile, UnreadableRequest, seam as provider_seam};

/// The [`Classify`] and [`Observe`] of HTTP requests and responses in a provider's format. The key is the
/// model that the request names.
#[derive(Debug, Clone, Copy)]
pub struct Http {
    profile: Profile,
    whole: bool,
}

impl Http {
    /// Creates a reader of this provider's format.
    pub fn new(profile: Profile) -> Self {
        Self { profile, whole: false }
    }

    /// Reads each response body completely, regardless of its size, before the response is returned or
    /// retried. [`retry`](super::RateLimitLayer::retry) then also covers an error or a break anywhere in the body
    /// of a successful response, not only at its beginning, and an
    /// [invalid body](crate::provider::InvalidAnswer): empty, HTML, `null` or `{}`. Use it for clients that don't
    /// stream.
    ///
    /// A response is still streamed if no retry can follow: on the last attempt, for a request that
    /// can't be [replayed](super::Replay), after the deadline, and on a layer without `retry`.
    ///
    /// ```
    /// use paceline::middleware::{Http, RateLimitLayer};
    /// use paceline::provider::OPENAI;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = paceline::Limiter::builder().build()?;
    /// let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(3);
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Replaces the provider.
    pub(super) fn with_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Classifies a request with this method, path and body. If the body isn't in memory (`None`), its cost is
    /// estimated from `size`.
    pub(super) fn read(
        &self,
        method: &Method,
        path: &str,
        body: Option<&[u8]>,
        size: Option<u64>,
        key: Option<&str>,
    ) -> Classified {
        let estimate = match body {
            Some(body) => self.profile.read_request(path, body),
            None => self.profile.read_head(path, size.unwrap_or(0)),
        };
        let has_body = body.map_or(size != Some(0), |body| !body.is_empty());
        self.classified(estimate, || self.profile.is_free(method, path, has_body), key)
    }

    /// Classifies a request from the network and returns the reason if it can't be read reliably. A request that
    /// names no model runs `default_model`, unless the provider documents another default.
    #[doc(hidden)]
    pub fn classify_strictly<B: PeekBody>(
        &self,
        request: &http::Request<B>,
        default_model: Option<&str>,
    ) -> (Classified, Option<UnreadableRequest>) {
        let (path, headers) = (request.uri().path(), request.headers());
        let read = |body: Option<&[u8]>| {
            let body = body.unwrap_or_default();
            provider_seam::read_request_of(&self.profile, path, headers, body, default_model)
        };
        let (estimate, unreadable) = request.body().peek(read);
        let has_body = request.body().size() != Some(0);
        let is_free = || self.profile.is_free(request.method(), path, has_body);
        let mut classified = self.classified(estimate, is_free, None);
        classified.doubt_free(headers);
        (classified, unreadable)
    }

    fn classified(
        &self,
        mut estimate: Estimate,
        is_free: impl FnOnce() -> bool,
        key: Option<&str>,
    ) -> Classified {
        let operation = estimate.operation;
        let is_named = estimate.model.is_some();
        let pricing = provider_seam::pricing(&mut estimate);
        *pricing = pricing.take().filter(|_| is_named);
        // Requests with a price are never free, so that the list isn't searched for most requests.
        let is_free = pricing.is_none() && is_free();
        let of_mode = estimate.mode.and_then(|_| estimate.key());
        let model = estimate.model.take();
        let of_model =
            |model: Option<Key>| model.map_or_else(ScopeKey::of_unknown_model, ScopeKey::of_model);
        let (key, model) = match (key, of_mode) {
            (Some(key), _) => (ScopeKey::new(key), Some(of_model(model).into_text())),
            (None, Some(own)) => (ScopeKey::of_model(own), model),
            (None, None) => (of_model(model), None),
        };
        let call = Call { profile: self.profile, operation, model, is_free };
        Classified::estimated(key, estimate).with_call(call)
    }

    pub(super) fn guard<B: Body<Data = Bytes>>(
        &self,
        response: http::Response<B>,
        guard: ResponseGuard,
    ) -> http::Response<ResponseBody<B>> {
        let (mut parts, body) = response.into_parts();
        let body = ForwardingBody::of_response(&mut parts, body, guard, self.profile);
        http::Response::from_parts(parts, ResponseBody::new(body))
    }

    pub(super) fn judging<B: Body<Data = Bytes>>(
        &self,
        response: http::Response<B>,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<http::Response<ResponseBody<B>>, Judging<B>> {
        Judging::of(response, guard, self.profile, self.whole, deadline)
    }
}

impl<B: PeekBody> Classify<http::Request<B>> for Http {
    fn classify(&self, request: &http::Request<B>, key: Option<&str>) -> Classified {
        let (method, path, body) = (request.method(), request.uri().path(), request.body());
        let mut classified = body.peek(|bytes| self.read(method, path, bytes, body.size(), key));
        classified.read_extensions(request.extensions());
        classified.is_head = request.method() == http::Method::HEAD;
        classified.doubt_free(request.headers());
        classified
    }
}

impl<B: Body<Data = Bytes>> Observe<http::Response<B>> for Http {
    type Observed = http::Response<ResponseBody<B>>;

    fn observe(&self, response: http::Response<B>, guard: ResponseGuard) -> Self::Observed {
        self.guard(response, guard)
    }

    fn is_unsent<E: 'static>(&self, error: &E) -> bool {
        is_unsent(error)
    }

    fn server_failure<E: 'static>(&self, error: &E) -> Option<ServerFailure> {
        ServerFailure::of_error(error)
    }
}

impl<B: Body<Data = Bytes>> Judge<http::Response<B>> for Http {
    type Judging = Judging<B>;

    fn judge(
        &self,
        response: http::Response<B>,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<Self::Observed, Judging<B>> {
        self.judging(response, guard, deadline)
    }
}
