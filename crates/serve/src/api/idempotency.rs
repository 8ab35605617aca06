use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use super::error::{ApiError, RETRY_AFTER, unavailable};
use super::extract::body_error;
use super::response_cache::{CachedResponse, Digest, Lookup, PendingRequest, ResponseCache};
use crate::app::App;
use crate::auth::Identity;
use crate::client_address::ClientAddress;
use crate::problem::Problem;

/// The state of the middleware [`idempotent`].
#[derive(Debug, Clone)]
pub(super) struct IdempotencyLayer {
    app: Arc<App>,
    responses: Arc<ResponseCache>,
}

impl IdempotencyLayer {
    pub(super) fn new(app: &Arc<App>, responses: &Arc<ResponseCache>) -> Self {
        Self { app: Arc::clone(app), responses: Arc::clone(responses) }
    }
}

/// The time for which a response should be stored: an extension of responses.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepFor(pub(super) Duration);

/// True if the request has an idempotency key, so that its client can request the response again.
#[derive(Debug, Clone, Copy)]
pub(super) struct HasIdempotencyKey(pub(super) bool);

impl<S: Sync> FromRequestParts<S> for HasIdempotencyKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.contains_key(NAME)))
    }
}

/// Middleware for `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07): a retry with the
/// same key and the same request receives the stored response, without executing it again; the same key
/// with another request is an error. Keys are scoped by token and path.
///
/// Only successful responses are stored. A refused request changed nothing, and may be retried with its
/// key.
pub(super) async fn idempotent(
    State(IdempotencyLayer { app, responses }): State<IdempotencyLayer>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let Some(key) = key(request.headers())? else { return Ok(next.run(request).await) };
    let scope = digest(&[
        &[request.extensions().get::<Identity>().map_or(0, |&identity| identity as u8)],
        request.method().as_str().as_bytes(),
        request.uri().path().as_bytes(),
        key.as_bytes(),
    ]);
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts.clone(), body);
    let body = Bytes::from_request(request, &()).await.map_err(body_error)?;
    let kind = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let client = ClientAddress::of_request(&parts.extensions);
    let content = digest(&[kind, query, &body]);
    let pending = match responses.lookup(scope, content, client, app.limiter.now()) {
        Lookup::New(pending) => pending,
        Lookup::Stored(stored) => return Ok(stored.into_response()),
        Lookup::InProgress => return Err(in_progress()),
        Lookup::KeyReused => return Err(key_reused()),
        Lookup::Full => return Err(cache_full()),
    };
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    Ok(store(&app, pending, response).await)
}

async fn store(app: &App, pending: PendingRequest, response: Response) -> Response {
    if !response.status().is_success() {
        return response;
    }
    let ttl = response.extensions().get::<KeepFor>().map_or(Duration::ZERO, |keep_for| keep_for.0);
    let (parts, body) = response.into_parts();
    // Responses of the API are complete and short.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let cached = CachedResponse {
        status: parts.status,
        content_type: parts.headers.get(CONTENT_TYPE).cloned(),
        location: parts.headers.get(LOCATION).cloned(),
        body: body.clone(),
    };
    pending.store(cached, app.limiter.now(), ttl);
    Response::from_parts(parts, Body::from(body))
}

impl IntoResponse for CachedResponse {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = [(CONTENT_TYPE, self.content_type), (LOCATION, self.location)];
        for (name, value) in headers {
            if let Some(value) = value {
                response.headers_mut().insert(name, value);
            }
        }
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}

/// Returns the key, with quotes (as in the draft) or without.
fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let key = bare.filter(|key| !key.is_empty()).unwrap_or(text);
    let is_key = (1..=MAX_KEY_LENGTH).contains(&key.len()) && values.next().is_none();
    match is_key && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Some(key.to_owned())),
        false => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad_idempotency_key",
            format!(
                "Idempotency-Key: must be a single value of 1 to {MAX_KEY_LENGTH} visible ASCII \
                 characters, such as a UUID"
            ),
        )
        .into()),
    }
}

/// Hashes parts with their lengths, so that different parts never have the same input.
fn digest(parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn in_progress() -> ApiError {
    let detail =
        "a request with this Idempotency-Key is still in progress; retry once it has completed";
    Problem::new(StatusCode::CONFLICT, "in_flight", detail).retry_after(RETRY_AFTER).into()
}

fn key_reused() -> ApiError {
    let detail = "this Idempotency-Key was used with a different request; use a new key for each \
                  request";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail).into()
}

fn cache_full() -> ApiError {
    unavailable(
        "too_many_idempotency_keys",
        "this address has as many stored responses as it may; retry later, or without an Idempotency-Key",
    )
}

const NAME: HeaderName = HeaderName::from_static("idempotency-key");

/// Marks a stored response.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The maximum length of a key in characters.
pub(super) const MAX_KEY_LENGTH: usize = 255;
