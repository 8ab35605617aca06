use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::api_state::Api;
use super::error::{ApiError, unavailable, unprocessable};
use super::extract::{JsonBody, PathParameter, QueryParameters};
use super::keys::check_key;
use super::page_request::PageRequest;
use super::unique_fields::UniqueFields;
use crate::problem::Problem;
use paceline::limiter::{NamedQuota, QuotaOrigin};
use paceline_config::section::quota_schema;
use paceline_config::{ConfigError, ConfiguredQuota, Keys};

/// A quota and the keys that it applies to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "NamedQuota")]
pub(super) struct QuotaResponse {
    /// A key, a glob, or `regex:` followed by a regular expression.
    name: String,
    /// The source of the quota.
    origin: Origin,
    /// Its limits.
    #[schemars(schema_with = "quota_schema")]
    quota: Value,
}

/// The source of a quota.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Origin")]
enum Origin {
    /// The configuration file.
    Configured,
    /// This API, or the program that runs the server.
    Set,
    /// The headers of a provider's response.
    Learned,
    /// The provider's API for the limits of an account.
    Provider,
}

/// A page of quotas.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "QuotaPage")]
pub(super) struct QuotasResponse {
    /// The quotas, sorted by name.
    quotas: Vec<QuotaResponse>,
    /// The value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Handles `GET /v1/quotas`: configured, set and learned quotas, sorted by name, without the default
/// quotas of providers.
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    QueryParameters(page): QueryParameters<PageRequest>,
) -> Result<Json<QuotasResponse>, ApiError> {
    let limiter = api.limiter().clone();
    let scan = move || {
        let (quotas, next) = page.of(&limiter.quotas().list(), |quota| &quota.name);
        QuotasResponse { quotas: quotas.into_iter().map(QuotaResponse::from).collect(), next }
    };
    Ok(Json(api.app.scan(scan).await?))
}

/// Handles `GET /v1/quotas/{name}`.
pub(super) async fn one(
    State(api): State<Arc<Api>>,
    PathParameter(name): PathParameter,
) -> Result<Json<QuotaResponse>, ApiError> {
    api.limiter().quotas().get(&name).map(|quota| Json(quota.into())).ok_or_else(unknown_quota)
}

/// Handles `PUT /v1/quotas/{name}`. The quota takes effect immediately and keeps the usage.
pub(super) async fn put(
    State(api): State<Arc<Api>>,
    PathParameter(name): PathParameter,
    JsonBody(UniqueFields(fields)): JsonBody<UniqueFields>,
) -> Result<(StatusCode, Json<QuotaResponse>), ApiError> {
    check_key("the name in the path", &name, api.max_key_length())?;
    let parsed = ConfiguredQuota::parse_json(&name, &fields);
    let quota = parsed.map_err(|error| invalid_quota(&error))?;
    let is_new = api.limiter().quotas().get(&name).is_none();
    if is_new && api.limiter().quotas().len() >= api.app.serve.bounds.keys {
        return Err(too_many_quotas());
    }
    let set = api.limiter().quotas().set(&name, &quota.quota);
    set.map_err(|error| unprocessable(error.to_string()))?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let set = NamedQuota::new(name, quota.quota, QuotaOrigin::Set);
    Ok((status, Json(set.into())))
}

/// Handles `DELETE /v1/quotas/{name}`.
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    PathParameter(name): PathParameter,
) -> Result<StatusCode, ApiError> {
    let removed = api.limiter().quotas().remove(&name);
    removed.then_some(StatusCode::NO_CONTENT).ok_or_else(unknown_quota)
}

impl From<NamedQuota> for QuotaResponse {
    fn from(named: NamedQuota) -> Self {
        let NamedQuota { name, quota, origin, .. } = named;
        let keys = Keys::Named(name.clone());
        Self {
            name,
            origin: match origin {
                QuotaOrigin::Configured => Origin::Configured,
                QuotaOrigin::Set => Origin::Set,
                QuotaOrigin::Learned => Origin::Learned,
                QuotaOrigin::Provider => Origin::Provider,
            },
            quota: ConfiguredQuota::new(keys, quota).to_json(),
        }
    }
}

fn invalid_quota(error: &ConfigError) -> ApiError {
    let message =
        |problem: &paceline_config::Problem| format!("{}: {}", problem.path, problem.message);
    let problems: Vec<_> = error.problems.iter().map(message).collect();
    unprocessable(problems.join("\n"))
}

fn too_many_quotas() -> ApiError {
    unavailable("too_many_quotas", "too many quotas are set (serve.bounds.keys); delete some")
}

fn unknown_quota() -> ApiError {
    let detail = "no quota has exactly this name; /v1/stats/{key} returns the limits of a key";
    Problem::new(StatusCode::NOT_FOUND, "unknown_quota", detail).into()
}
