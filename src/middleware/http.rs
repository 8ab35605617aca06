use crate::quota::Key;
use bytes::Bytes;
use http_body::Body;

use super::body::ResponseBody;
use super::classify::{Classified, Classify};
use super::observe::Observe;
use super::peek::PeekBody;
use super::record::Call;
use super::response_guard::ResponseGuard;
use super::retry::{Judge, Judged, Judging};
use super::unsent::never_left;
use crate::provider::{Estimate, Profile, UnreadableRequest};
use crate::timestamp::Timestamp;

/// Reads HTTP requests and responses as a provider has them: the key is the model that the request
/// names.
#[derive(Debug, Clone, Copy)]
pub struct Http {
    profile: Profile,
    whole: bool,
}

impl Http {
    /// Reads them as this provider has them.
    pub fn new(profile: Profile) -> Self {
        Self { profile, whole: false }
    }

    /// Reads an answer to its end, whatever its size, before it is handed out or its request is sent
    /// again, so that [`retry`](super::RateLimitLayer::retry) covers an error in the body of a success
    /// too, an answer that breaks off, and a body that is [no answer](crate::provider::InvalidAnswer):
    /// empty, HTML, cut off, `null`, `{}`. For callers that want no streams.
    ///
    /// Where no other try can follow there is nothing to wait for: the answer to the last try, to a
    /// request that can't be [replayed](super::Replay), or after the deadline, comes as a stream, and
    /// so does every answer without `retry`.
    ///
    /// ```
    /// use tollgate::middleware::{Http, RateLimitLayer};
    /// use tollgate::provider::OPENAI;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = tollgate::Limiter::builder().build()?;
    /// let layer = RateLimitLayer::new(limiter).observe(Http::new(OPENAI).whole()).retry(3);
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// The same for another provider.
    pub(super) fn with_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// What a request with this path and body is; `body` is `None` where it isn't in memory, and
    /// then only its size counts.
    pub(super) fn read(
        &self,
        path: &str,
        body: Option<&[u8]>,
        size: Option<u64>,
        key: Option<&str>,
    ) -> Classified {
        let estimate = match body {
            Some(body) => self.profile.read_request(path, body),
            None => self.profile.read_head(path, size.unwrap_or(0)),
        };
        self.classified(estimate, key)
    }

    /// What a request that came over the network is, and why it can't be read for certain.
    #[doc(hidden)]
    pub fn classify_strictly<B: PeekBody>(
        &self,
        request: &http::Request<B>,
    ) -> (Classified, Option<UnreadableRequest>) {
        let (path, headers) = (request.uri().path(), request.headers());
        let read = |body: Option<&[u8]>| {
            self.profile.read_request_strictly(path, headers, body.unwrap_or_default())
        };
        let (estimate, unreadable) = request.body().peek(read);
        (self.classified(estimate, None), unreadable)
    }

    fn classified(&self, mut estimate: Estimate, key: Option<&str>) -> Classified {
        let operation = estimate.operation;
        let model = estimate.model.take().unwrap_or(Key::from_static(NO_MODEL));
        let (key, model) = match key {
            Some(key) => (key.into(), Some(model)),
            None => (model, None),
        };
        let call = Call { profile: self.profile, operation, model };
        Classified::estimated(key, estimate).calling(call)
    }

    pub(super) fn guard<B: Body<Data = Bytes>>(
        &self,
        response: http::Response<B>,
        guard: ResponseGuard,
    ) -> http::Response<ResponseBody<B>> {
        let reading = guard.head(self.profile, response.status(), response.headers());
        response.map(|body| ResponseBody::new(body, reading))
    }

    pub(super) fn judging<B: Body<Data = Bytes>>(
        &self,
        response: http::Response<B>,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<http::Response<ResponseBody<B>>, Judging<B>> {
        Judging::of(response, guard, (self.profile, self.whole), deadline)
    }
}

impl<B: PeekBody> Classify<http::Request<B>> for Http {
    fn classify(&self, request: &http::Request<B>, key: Option<&str>) -> Classified {
        let (path, body) = (request.uri().path(), request.body());
        let mut classified = body.peek(|bytes| self.read(path, bytes, body.size(), key));
        classified.read_extensions(request.extensions());
        classified
    }
}

impl<B: Body<Data = Bytes>> Observe<http::Response<B>> for Http {
    type Observed = http::Response<ResponseBody<B>>;

    fn observe(&self, response: http::Response<B>, guard: ResponseGuard) -> Self::Observed {
        self.guard(response, guard)
    }

    fn never_left<E: 'static>(&self, error: &E) -> bool {
        never_left(error)
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

/// The key of requests that name no model.
const NO_MODEL: &str = "unknown";
