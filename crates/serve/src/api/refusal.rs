use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use serde_json::{Map, Value};
use tollgate::Key;

use super::fault::{Fault, closed};
use super::keys::shown;
use super::state::Api;
use tollgate::engine::Wait;
use tollgate::limiter::{AcquireError, Code, Refused};
use tollgate::middleware::respond::refusal;
use tollgate::quota::Cost;

/// What a client is told that doesn't get its reservation: as the middleware tells it, and in words.
pub(super) fn refused(
    api: &Api,
    keys: &[Key],
    (cost, wait): (&Cost, Duration),
    error: &AcquireError,
) -> Fault {
    let is_closed = |refused: &Refused| refused.code == Code::Closed;
    if *error == AcquireError::Closed || error.refused().is_some_and(is_closed) {
        return closed();
    }
    let (head, body) = refusal(api.limiter(), &shown(keys), cost, error).into_parts();
    let mut document: Map<String, Value> = serde_json::from_slice(&body).unwrap_or_default();
    document.insert("detail".to_owned(), detail(error, wait).into());
    let body = serde_json::to_vec(&document).expect("texts and numbers are JSON");
    Fault::new(Response::from_parts(head, Body::from(body)))
}

/// What, where, and what to do.
fn detail(error: &AcquireError, wait: Duration) -> String {
    let Some(refused) = error.refused() else {
        let advice = match error {
            AcquireError::QueueFull { .. } => "; ask again later",
            _ => "; set one, or ask for another key",
        };
        return format!("{error}{advice}");
    };
    let advice = match (refused.wait, refused.code) {
        (Wait::Never, Code::UnknownModel) => "; set a quota for the key",
        (Wait::Never, Code::MissingLimit) => "",
        (Wait::Never, _) => "; it never fits: ask for less, or raise the quota",
        (_, Code::TooManyKeys | Code::Unavailable) => "; ask again later",
        _ if wait.is_zero() => "; ask again then, or wait for it (wait_ms)",
        _ => "; ask again then, or wait longer (wait_ms)",
    };
    format!("{refused}{advice}")
}
