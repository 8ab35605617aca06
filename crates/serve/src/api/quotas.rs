use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::fault::{Fault, full, meaningless};
use super::json::{Asked, Body, Name};
use super::keys::key_of;
use super::page::PageFields;
use super::state::Api;
use super::unique::Unique;
use crate::problem::Problem;
use tollgate::config::section::quota_schema;
use tollgate::config::{ConfigError, ConfiguredQuota, Keys};
use tollgate::limiter::{NamedQuota, QuotaOrigin};

/// A quota, and which keys it is for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "NamedQuota")]
pub(super) struct QuotaTold {
    /// A key, a glob, or `regex:` and a regular expression.
    name: String,
    /// Who has set it.
    origin: OriginTold,
    /// Its limits.
    #[schemars(schema_with = "quota_schema")]
    quota: Value,
}

/// Who has set a quota.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Origin")]
enum OriginTold {
    /// The configuration.
    Configured,
    /// A request to this API, or the program.
    Set,
    /// The headers of a response.
    Learned,
}

/// A page of quotas.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "QuotaPage")]
pub(super) struct QuotasTold {
    /// By name.
    quotas: Vec<QuotaTold>,
    /// What to ask for `after`, where more follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// All quotas that were configured, set and learned, sorted by name; not those that providers bring
/// along.
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Asked(page): Asked<PageFields>,
) -> Result<Json<QuotasTold>, Fault> {
    let limiter = api.limiter().clone();
    let look = move || {
        let (quotas, next) = page.of(&limiter.quotas().list(), |quota| &quota.name);
        QuotasTold { quotas: quotas.into_iter().map(QuotaTold::from).collect(), next }
    };
    Ok(Json(api.app.survey(look).await?))
}

/// The quota of this very name.
pub(super) async fn one(
    State(api): State<Arc<Api>>,
    Name(name): Name,
) -> Result<Json<QuotaTold>, Fault> {
    api.limiter().quotas().get(&name).map(|quota| Json(quota.into())).ok_or_else(unknown)
}

/// Sets the quota of this name, in use at once. What was used stays used.
pub(super) async fn put(
    State(api): State<Arc<Api>>,
    Name(name): Name,
    Body(Unique(fields)): Body<Unique>,
) -> Result<(StatusCode, Json<QuotaTold>), Fault> {
    key_of("the name in the path", &name, api.longest_key())?;
    let parsed = ConfiguredQuota::parse_json(&name, &fields);
    let quota = parsed.map_err(|error| wrong(&error))?;
    let is_new = api.limiter().quotas().get(&name).is_none();
    if is_new && api.limiter().quotas().len() >= api.app.serve.bounds.keys {
        return Err(no_room());
    }
    api.limiter().quotas().set(&name, &quota.quota);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let set = NamedQuota::new(name, quota.quota, QuotaOrigin::Set);
    Ok((status, Json(set.into())))
}

/// Takes the quota of this name away.
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Name(name): Name,
) -> Result<StatusCode, Fault> {
    let removed = api.limiter().quotas().remove(&name);
    removed.then_some(StatusCode::NO_CONTENT).ok_or_else(unknown)
}

impl From<NamedQuota> for QuotaTold {
    fn from(named: NamedQuota) -> Self {
        let NamedQuota { name, quota, origin, .. } = named;
        let keys = Keys::Named(name.clone());
        Self {
            name,
            origin: match origin {
                QuotaOrigin::Configured => OriginTold::Configured,
                QuotaOrigin::Set => OriginTold::Set,
                QuotaOrigin::Learned => OriginTold::Learned,
            },
            quota: ConfiguredQuota::new(keys, quota).to_json(),
        }
    }
}

fn wrong(error: &ConfigError) -> Fault {
    let told =
        |problem: &tollgate::config::Problem| format!("{}: {}", problem.path, problem.message);
    let problems: Vec<_> = error.problems.iter().map(told).collect();
    meaningless(problems.join("\n"))
}

fn no_room() -> Fault {
    full("too_many_quotas", "as many quotas are set as the server keeps (serve.bounds.keys)")
}

fn unknown() -> Fault {
    let detail = "no quota of this very name is configured, set or learned; \
                  /v1/stats/{key} tells the limits of a key";
    Problem::new(StatusCode::NOT_FOUND, "unknown_quota", detail).into()
}
