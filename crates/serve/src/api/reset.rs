use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::api_state::Api;
use super::error::{ApiError, invalid};
use super::extract::JsonBody;
use super::keys::KeyText;

/// The usage to reset.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Reset")]
pub(super) enum ResetRequest {
    /// Resets the usage of this key.
    Key(KeyText),
    /// Resets the usage of all keys.
    All(#[schemars(extend("const" = true))] bool),
}

/// Handles `POST /v1/reset`: resets usage, and ends what refusals have stopped. Quota held by requests in flight stays held.
pub(super) async fn reset(
    State(api): State<Arc<Api>>,
    JsonBody(fields): JsonBody<ResetRequest>,
) -> Result<StatusCode, ApiError> {
    let key = match &fields {
        ResetRequest::Key(key) => Some(key.validate("key", api.max_key_length())?),
        ResetRequest::All(true) => None,
        ResetRequest::All(false) => return Err(invalid("all: must be true")),
    };
    match api.limiter().state().reset(key).await {
        true => Ok(StatusCode::NO_CONTENT),
        // The shared store is unreachable. The reset is repeated until it has confirmed it.
        false => Ok(StatusCode::ACCEPTED),
    }
}
