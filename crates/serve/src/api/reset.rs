use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::fault::{Fault, invalid};
use super::json::Body;
use super::keys::KeyText;
use super::state::Api;

/// What is forgotten.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Reset")]
pub(super) enum ResetFields {
    /// What this key has used.
    Key(KeyText),
    /// What all keys have used.
    All(#[schemars(extend("const" = true))] bool),
}

/// Forgets what keys have used, and that their provider refused them. What is in flight stays held.
pub(super) async fn reset(
    State(api): State<Arc<Api>>,
    Body(fields): Body<ResetFields>,
) -> Result<StatusCode, Fault> {
    match fields {
        ResetFields::Key(key) => {
            let key = key.checked("key", api.longest_key())?;
            api.limiter().reset(key);
        }
        ResetFields::All(true) => api.limiter().reset_all(),
        ResetFields::All(false) => return Err(invalid("all: must be true")),
    }
    Ok(StatusCode::NO_CONTENT)
}
