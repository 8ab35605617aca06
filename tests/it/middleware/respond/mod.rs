//! Server mode: the layer in front of a service.

mod charges;
mod fields;
mod peers;
mod refusals;
mod router;
mod scopes;

#[cfg(feature = "reqwest")]
mod example;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response};
use http_body_util::BodyExt;
use paceline::limiter::Limiter;
use paceline::middleware::RateLimitLayer;
use paceline::middleware::respond::{Respond, RespondBody, RespondLayer, Scope, Scopes};
use tower::{Layer, Service, ServiceExt};

use super::inner::{Frames, InnerError, Strict};
use super::{S, available, builder, held, limiter, settle_down};

type Guarded<C = Scopes> = Respond<Strict<Request<String>, Response<Frames>>, C>;

/// Returns server mode for the key `k` around a service that returns this response.
fn guarded(limiter: &Limiter, answer: fn() -> Response<Frames>) -> Guarded {
    respond(limiter).scope("k").layer(service_returning(answer))
}

fn respond(limiter: &Limiter) -> RespondLayer {
    RateLimitLayer::new(limiter.clone()).respond()
}

fn service_returning(
    answer: fn() -> Response<Frames>,
) -> Strict<Request<String>, Response<Frames>> {
    Strict::new(move |_| std::future::ready(Ok(answer())))
}

fn hello() -> Response<Frames> {
    Frames::from("hello").into_response()
}

/// Returns a request with these header fields, in order.
fn get(fields: &[(&'static str, &str)]) -> Request<String> {
    let mut request = Request::new(String::new());
    for (name, value) in fields {
        let value = value.parse().unwrap();
        request.headers_mut().append(HeaderName::from_static(name), value);
    }
    request
}

async fn send<C>(
    service: &mut Guarded<C>,
    request: Request<String>,
) -> Response<RespondBody<Frames>>
where
    C: paceline::middleware::Classify<Request<String>>,
{
    service.ready().await.unwrap().call(request).await.unwrap()
}

/// Sends a request without header fields. Returns the status, the header fields and the body.
async fn ask(service: &mut Guarded) -> (u16, HeaderMap, Bytes) {
    let (parts, body) = send(service, get(&[])).await.into_parts();
    (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
}

/// Returns the only value of this field.
fn field<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    assert_eq!(headers.get_all(name).iter().count(), 1, "{name}: {headers:?}");
    headers[name].to_str().unwrap()
}

fn problem(body: &[u8]) -> serde_json::Value {
    serde_json::from_slice(body).unwrap()
}

/// Returns a scope of API keys.
fn api_key() -> Scope {
    Scope::header(HeaderName::from_static("x-api-key"))
}
