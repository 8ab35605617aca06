use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::fault::Fault;
use crate::causes::is_of_length;
use crate::problem::Problem;

/// A request's body: JSON of this form, and said to be.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

/// The same of a request that may come without one.
#[derive(Debug)]
pub(super) struct OptionalBody<T>(pub(super) T);

/// The last part of a path, decoded.
#[derive(Debug)]
pub(super) struct Name(pub(super) String);

/// What stands behind the `?`.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let is_json = is_json(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        parse(is_json, &bytes).map(Self)
    }
}

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let is_json = is_json(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        match bytes.is_empty() {
            true => Ok(Self(T::default())),
            false => parse(is_json, &bytes).map(Self),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        let unreadable = |_| bad("the path is not text in UTF-8, percent-encoded".to_owned());
        name.map(|Path(name)| Self(name)).map_err(unreadable)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let asked = Query::<T>::from_request_parts(parts, state).await;
        asked.map(|Query(asked)| Self(asked)).map_err(|rejection| bad(rejection.body_text()))
    }
}

fn parse<T: DeserializeOwned>(is_json: bool, bytes: &[u8]) -> Result<T, Fault> {
    if !is_json {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body must be JSON; send it with `content-type: application/json`",
        )
        .into());
    }
    Json::from_bytes(bytes).map(|Json(value)| value).map_err(|rejection| malformed(&rejection))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

fn malformed(rejection: &JsonRejection) -> Fault {
    // serde tells where and what; axum puts a sentence before it.
    let text = rejection.body_text();
    let told = BEFORE.iter().find_map(|before| text.strip_prefix(before));
    bad(told.unwrap_or(&text).to_owned())
}

fn bad(detail: String) -> Fault {
    Problem::new(StatusCode::BAD_REQUEST, "bad_request", detail).into()
}

/// A body that is too long, or can't be read to its end.
#[expect(clippy::needless_pass_by_value, reason = "it is what an error is mapped by")]
pub(super) fn unread(rejection: BytesRejection) -> Fault {
    match is_too_long(&rejection) {
        true => {
            let detail = format!(
                "the body is longer than {LONGEST_BODY} bytes, or than `serve.bounds.body`"
            );
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail).into()
        }
        false => Problem::new(rejection.status(), "unreadable_body", rejection.body_text()).into(),
    }
}

/// Whether a bound on the body is what was met: ours, or that of all bodies, which axum doesn't find below
/// what reads compressed ones.
fn is_too_long(rejection: &BytesRejection) -> bool {
    rejection.status() == StatusCode::PAYLOAD_TOO_LARGE || is_of_length(rejection)
}

/// In bytes: several times what the largest request of all bounds takes.
pub(super) const LONGEST_BODY: usize = 256 * 1_024;

const BEFORE: [&str; 2] = [
    "Failed to deserialize the JSON body into the target type: ",
    "Failed to parse the request body as JSON: ",
];
