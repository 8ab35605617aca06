use http_body::Body as _;
use reqwest::{Body, Request, Response, ResponseBuilderExt};

use super::classify::{Classified, Classify};
use super::http::Http;
use super::observe::Observe;
use super::unsent::never_left;
use super::watch::Watch;

impl Classify<Request> for Http {
    /// A body that is a stream is estimated from its size, if it knows that, or its
    /// `content-length`.
    fn classify(&self, request: &Request, key: Option<&str>) -> Classified {
        let path = request.url().path();
        let Some(body) = request.body() else { return self.read(path, Some(&[]), None, key) };
        let stated = || request.headers().get(http::header::CONTENT_LENGTH)?.to_str().ok();
        let size = body.size_hint().exact().or_else(|| stated()?.parse().ok());
        self.read(path, body.as_bytes(), size, key)
    }
}

impl Observe<Response> for Http {
    type Observed = Response;

    fn observe(&self, response: Response, watch: Watch) -> Response {
        let url = response.url().clone();
        let (mut parts, body) = self.watch(response.into(), watch).into_parts();
        // The way back to reqwest's own type looks for the URL in an extension.
        let carrier = http::Response::builder().url(url).body(());
        if let Ok(carrier) = carrier {
            parts.extensions.extend(carrier.into_parts().0.extensions);
        }
        http::Response::from_parts(parts, Body::wrap(body)).into()
    }

    fn never_left<E: 'static>(&self, error: &E) -> bool {
        never_left(error)
    }
}
