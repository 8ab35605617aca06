use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use paceline::Key;
use serde_json::{Map, Value};

use super::api_state::Api;
use super::error::{ApiError, stopping};
use super::keys::public_keys;
use paceline::engine::Wait;
use paceline::limiter::{AcquireError, Code, Refused};
use paceline::middleware::respond::refusal;
use paceline::quota::Cost;

/// Returns the response to a refused reservation: that of the middleware, with a `detail`.
pub(super) fn refusal_error(
    api: &Api,
    keys: &[Key],
    cost: &Cost,
    wait: Duration,
    error: &AcquireError,
) -> ApiError {
    let is_closed = |refused: &Refused| refused.code == Code::Closed;
    if *error == AcquireError::Closed || error.refused().is_some_and(is_closed) {
        return stopping();
    }
    let (head, body) = refusal(api.limiter(), &public_keys(keys), cost, error).into_parts();
    let mut document: Map<String, Value> = serde_json::from_slice(&body).unwrap_or_default();
    document.insert("detail".to_owned(), detail(error, wait).into());
    let body = serde_json::to_vec(&document).expect("serialization to JSON cannot fail");
    ApiError::new(Response::from_parts(head, Body::from(body)))
}

/// Describes the error and how to fix it.
fn detail(error: &AcquireError, wait: Duration) -> String {
    let Some(refused) = error.refused() else {
        let advice = match error {
            AcquireError::Removed { .. } => "; set a quota, or use another key",
            _ => "",
        };
        return format!("{error}{advice}");
    };
    let advice = match (refused.wait, refused.code) {
        (Wait::Never, Code::UnknownModel) => "; set a quota for the key",
        (Wait::Never, _) => "",
        (_, Code::TooManyKeys | Code::Unavailable) => "",
        _ if wait.is_zero() => ", or set wait_ms to wait",
        _ => ", or raise wait_ms",
    };
    format!("{refused}{advice}")
}
