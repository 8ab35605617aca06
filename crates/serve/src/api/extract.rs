use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::error::ApiError;
use crate::problem::Problem;

/// A JSON request body with a JSON content type.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

/// An optional JSON request body.
#[derive(Debug)]
pub(super) struct OptionalJsonBody<T>(pub(super) T);

/// The decoded parameter of a path.
#[derive(Debug)]
pub(super) struct PathParameter(pub(super) String);

/// The query parameters.
#[derive(Debug)]
pub(super) struct QueryParameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(body_error)?;
        parse(is_json, &bytes).map(Self)
    }
}

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(body_error)?;
        match bytes.is_empty() {
            true => Ok(Self(T::default())),
            false => parse(is_json, &bytes).map(Self),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        let unreadable = |_| bad_request("the path is not valid percent-encoded UTF-8".to_owned());
        name.map(|Path(name)| Self(name)).map_err(unreadable)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|Query(query)| Self(query))
            .map_err(|rejection| bad_request(rejection.body_text()))
    }
}

fn parse<T: DeserializeOwned>(is_json: bool, bytes: &[u8]) -> Result<T, ApiError> {
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

fn malformed(rejection: &JsonRejection) -> ApiError {
    // Remove the sentence that axum puts before serde's message.
    let text = rejection.body_text();
    let message = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
    bad_request(message.unwrap_or(&text).to_owned())
}

fn bad_request(detail: String) -> ApiError {
    Problem::new(StatusCode::BAD_REQUEST, "bad_request", detail).into()
}

/// Returns the error for a body that is not the one which [`body::read`](super::body::read) has read.
#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` needs")]
pub(super) fn body_error(rejection: BytesRejection) -> ApiError {
    Problem::new(rejection.status(), "unreadable_body", rejection.body_text()).into()
}

const PREFIXES: [&str; 2] = [
    "Failed to deserialize the JSON body into the target type: ",
    "Failed to parse the request body as JSON: ",
];
