use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Body as _;
use reqwest::{Body, Request, Response, ResponseBuilderExt, Url};

use super::classify::{Classified, Classify};
use super::http::Http;
use super::observe::Observe;
use super::peek::{PeekBody, content_length};
use super::response_guard::ResponseGuard;
use super::retry::{Judge, Judged, Judging, Verdict};
use super::server_failure::ServerFailure;
use super::unsent::is_unsent;
use crate::Timestamp;

/// Classifies requests of reqwest.
///
/// A `reqwest::Request` doesn't expose its extensions. To set extensions, for example a
/// [`Journey`](super::Journey), send `http` requests with a `reqwest::Body` and convert them inside
/// the layer with tower's `filter`:
///
/// ```
/// use paceline::middleware::{Journey, RateLimitLayer};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # async fn example(limiter: paceline::Limiter) -> Result<(), tower::BoxError> {
/// let client = ServiceBuilder::new()
///     .layer(RateLimitLayer::new(limiter))
///     .filter(|request: http::Request<reqwest::Body>| reqwest::Request::try_from(request))
///     .service(reqwest::Client::new());
///
/// let journey = Journey::new();
/// let request = http::Request::post("https://api.openai.com/v1/embeddings")
///     .extension(journey.clone())
///     .body(r#"{"model": "text-embedding-3-small", "input": "Hello"}"#.into())?;
/// if let Ok(response) = client.oneshot(request).await {
///     println!("{}", response.text().await?);
/// }
/// # Ok(())
/// # }
/// ```
impl Classify<Request> for Http {
    /// Classifies a request. The cost of a streaming body is estimated from its exact size hint or the
    /// `content-length`.
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified {
        let (method, path) = (request.method(), request.url().path());
        let mut classified = match request.body() {
            None => self.read(method, path, Some(&[]), None, key),
            Some(body) => {
                let size = body.size().or_else(|| content_length(request.headers()));
                body.peek(|bytes| self.read(method, path, bytes, size, key))
            }
        };
        classified.is_head = method == http::Method::HEAD;
        classified.doubt_free(request.headers());
        classified
    }
}

impl PeekBody for Body {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(self.as_bytes())
    }

    fn size(&self) -> Option<u64> {
        self.size_hint().exact()
    }

    /// Copies a body that is in memory; reqwest shares the bytes only between clones of a request.
    fn replay(&self) -> Option<Self> {
        self.as_bytes().map(|bytes| bytes.to_vec().into())
    }
}

impl Observe<Response> for Http {
    type Observed = Response;

    fn observe(&self, response: Response, guard: ResponseGuard) -> Response {
        let url = response.url().clone();
        with_url(self.guard(response.into(), guard).map(Body::wrap), url)
    }

    fn is_unsent<E: 'static>(&self, error: &E) -> bool {
        is_unsent(error)
    }

    fn server_failure<E: 'static>(&self, error: &E) -> Option<ServerFailure> {
        ServerFailure::of_error(error)
    }
}

impl Judge<Response> for Http {
    type Judging = ReqwestJudging;

    fn judge(
        &self,
        response: Response,
        guard: ResponseGuard,
        deadline: Option<Timestamp>,
    ) -> Judged<Response, ReqwestJudging> {
        let url = response.url().clone();
        match self.judging(response.into(), guard, deadline) {
            Judged::Judging(judging) => Judged::Judging(ReqwestJudging { judging, url: Some(url) }),
            Judged::Passed(response) => Judged::Passed(with_url(response.map(Body::wrap), url)),
        }
    }
}

/// A future that reads a `reqwest::Response` ahead until the retry verdict is known, as [`Judging`] does
/// with an `http::Response`.
#[derive(Debug)]
pub struct ReqwestJudging {
    judging: Judging<Body>,
    url: Option<Url>,
}

impl Future for ReqwestJudging {
    type Output = (Response, Verdict);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, verdict) = ready!(Pin::new(&mut self.judging).poll(cx));
        let url = self.url.take().expect("a response is judged once");
        Poll::Ready((with_url(response.map(Body::wrap), url), verdict))
    }
}

/// Returns a `reqwest::Response` with another body, for an [`Observe`] of one's own.
///
/// It keeps the URL, which a conversion to an `http::Response` and back would lose.
///
/// ```
/// use http_body_util::BodyExt;
/// use reqwest::{Body, Response};
/// use paceline::middleware::{Observe, ResponseGuard, map_reqwest_body};
///
/// /// Charges the reserved cost, and counts a request as in flight until its body has ended.
/// struct Reserved;
///
/// impl Observe<Response> for Reserved {
///     type Observed = Response;
///
///     fn observe(&self, response: Response, guard: ResponseGuard) -> Response {
///         map_reqwest_body(response, |body| {
///             Body::wrap(body.map_frame(move |frame| {
///                 let _ = &guard;
///                 frame
///             }))
///         })
///     }
/// }
/// ```
pub fn map_reqwest_body(response: Response, map: impl FnOnce(Body) -> Body) -> Response {
    let url = response.url().clone();
    with_url(http::Response::from(response).map(map), url)
}

/// Converts to a `reqwest::Response`, which takes its URL from an extension.
fn with_url(response: http::Response<Body>, url: Url) -> Response {
    let (mut parts, body) = response.into_parts();
    let carrier = http::Response::builder().url(url).body(());
    if let Ok(carrier) = carrier {
        parts.extensions.extend(carrier.into_parts().0.extensions);
    }
    http::Response::from_parts(parts, body).into()
}
