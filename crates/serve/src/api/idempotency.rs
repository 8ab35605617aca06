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

use super::answers::{Answer, Answers, Begun, Digest, Turn};
use super::fault::{Fault, SOON, full};
use super::json::unread;
use crate::app::App;
use crate::auth::Holder;
use crate::problem::Problem;

/// What it takes to [`honour`]: the clock, and the room that answers are kept in.
#[derive(Debug, Clone)]
pub(super) struct Honour {
    app: Arc<App>,
    answers: Arc<Answers>,
}

impl Honour {
    pub(super) fn new(app: &Arc<App>, answers: &Arc<Answers>) -> Self {
        Self { app: Arc::clone(app), answers: Arc::clone(answers) }
    }
}

/// For how long an answer is best kept: an extension of the answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepFor(pub(super) Duration);

/// Whether a request has an idempotency key, so that its client can ask for the answer again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyed(pub(super) bool);

impl<S: Sync> FromRequestParts<S> for Keyed {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.contains_key(NAME)))
    }
}

/// Honours `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07): the same key and the same
/// request are answered the same, without doing it again; the same key and another request is a
/// mistake. Keys are those of the token that was shown, whichever way, and of one path.
///
/// Only what was done is kept. A request that was refused did nothing, and may be sent again with its
/// key.
pub(super) async fn honour(
    State(Honour { app, answers }): State<Honour>,
    request: Request,
    next: Next,
) -> Result<Response, Fault> {
    let Some(key) = key(request.headers())? else { return Ok(next.run(request).await) };
    let scope = digest(&[
        &[request.extensions().get::<Holder>().map_or(0, |&holder| holder as u8)],
        request.method().as_str().as_bytes(),
        request.uri().path().as_bytes(),
        key.as_bytes(),
    ]);
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let body = Bytes::from_request(whole, &()).await.map_err(unread)?;
    let kind = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let turn = match answers.begin(scope, digest(&[kind, query, &body]), app.limiter.now()) {
        Begun::First(turn) => turn,
        Begun::Again(answer) => return Ok(answer.into_response()),
        Begun::Busy => return Err(busy()),
        Begun::Other => return Err(other()),
        Begun::Full => return Err(no_room()),
    };
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    Ok(keep(&app, turn, response).await)
}

async fn keep(app: &App, turn: Turn, response: Response) -> Response {
    if !response.status().is_success() {
        return response;
    }
    let at_least = response.extensions().get::<KeepFor>().map_or(Duration::ZERO, |keep| keep.0);
    let (parts, body) = response.into_parts();
    // Ours are whole, and short.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let answer = Answer {
        status: parts.status,
        content_type: parts.headers.get(CONTENT_TYPE).cloned(),
        location: parts.headers.get(LOCATION).cloned(),
        body: body.clone(),
    };
    turn.keep(answer, app.limiter.now(), at_least);
    Response::from_parts(parts, Body::from(body))
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let told = [(CONTENT_TYPE, self.content_type), (LOCATION, self.location)];
        for (name, value) in told {
            if let Some(value) = value {
                response.headers_mut().insert(name, value);
            }
        }
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}

/// The key, in quotes as the draft has it, or without as many send it.
fn key(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let key = bare.filter(|key| !key.is_empty()).unwrap_or(text);
    let is_key = (1..=LONGEST_KEY).contains(&key.len()) && values.next().is_none();
    match is_key && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Some(key.to_owned())),
        false => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad_idempotency_key",
            format!(
                "Idempotency-Key: must be one text of 1 to {LONGEST_KEY} visible ASCII characters, \
                 such as a UUID"
            ),
        )
        .into()),
    }
}

/// Of parts that can't run into each other.
fn digest(parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn busy() -> Fault {
    let detail =
        "a request with this Idempotency-Key is still on its way; ask again once it is done";
    Problem::new(StatusCode::CONFLICT, "in_flight", detail).retry_after(SOON).into()
}

fn other() -> Fault {
    let detail = "this Idempotency-Key was sent with another request; make a new one for each";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail).into()
}

fn no_room() -> Fault {
    full(
        "too_many_idempotency_keys",
        "as many answers are kept as the server keeps; ask again later, or without a key",
    )
}

const NAME: HeaderName = HeaderName::from_static("idempotency-key");

/// Says that an answer was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// In characters.
pub(super) const LONGEST_KEY: usize = 255;
