use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};

use super::path_segment::{self, EMPTY_ID};
use super::rate_error::RateError;
use super::rate_key::RateKey;
use super::response_format::{ResponseFormat, empty};
use super::returned_grants::ReturnError;
use crate::app::App;

/// Handles `DELETE /rate/{key}/{id}`: returns an active grant of this key.
pub(super) async fn return_grant(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let format = ResponseFormat::of(request.headers());
    match try_return(&app, request.uri().path()) {
        Ok(()) => empty(),
        Err(error) => format.error(error),
    }
}

/// Handles a request without an id.
pub(super) async fn missing_id(request: Request) -> Response<Body> {
    ResponseFormat::of(request.headers()).error(RateError::invalid(EMPTY_ID))
}

fn try_return(app: &App, path: &str) -> Result<(), RateError> {
    let (path, id) = path.rsplit_once('/').unwrap_or((path, ""));
    let key = RateKey::of_path(path, app.serve.bounds.key).map_err(RateError::invalid)?;
    let id = path_segment::decode(id, MAX_ID_LENGTH, EMPTY_ID).map_err(RateError::invalid)?;
    app.rate.grants.return_grant(&app.limiter, key.as_str(), &id).map_err(|error| match error {
        ReturnError::AlreadyReturned => {
            let text = "no active grant of this key has this id";
            RateError { status: StatusCode::NOT_FOUND, text }
        }
        ReturnError::Full => RateError::busy("too many grants were returned"),
    })
}

/// Longer than any id, in bytes.
const MAX_ID_LENGTH: usize = 128;
