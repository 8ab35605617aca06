use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate::Key;

use super::cost::CostFields;
use super::fault::{Fault, closed, full, invalid, meaningless};
use super::handed::Handed;
use super::idempotency::{KeepFor, Keyed};
use super::json::Body;
use super::keys::{KeyList, shown};
use super::refusal::refused;
use super::reservation::OpenTold;
use super::reservations::{Place, Reservation};
use super::state::Api;
use super::whole::{TtlMillis, WaitMillis};
use tollgate::limiter::{Metadata, Permit};
use tollgate::middleware::respond::describe;
use tollgate::quota::Cost;

/// A reservation that is asked for.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reserve")]
pub(super) struct ReserveFields {
    /// What it is charged to, all or none; the narrowest first: a tenant before its model.
    keys: KeyList,
    /// What it takes. Default: one request.
    #[serde(default)]
    cost: CostFields,
    /// How long to wait for it, in milliseconds, in order of arrival; at most as long as the server lets
    /// anybody wait. Default: 0, not at all.
    #[serde(default = "not_at_all")]
    wait_ms: WaitMillis,
    /// How long it is held if nobody settles, releases or renews it, in milliseconds. Default: what the
    /// server is configured with.
    #[serde(default)]
    ttl_ms: Option<TtlMillis>,
    /// Names and values that come back with the reservation, and go with its events; at most 2,048 bytes
    /// in all, in UTF-8. Nothing secret.
    #[serde(default)]
    #[schemars(extend(
        "maxProperties" = MOST_METADATA,
        "propertyNames" = {"minLength": 1, "maxLength": LONGEST_METADATA},
        "additionalProperties" = {"type": "string", "maxLength": LONGEST_METADATA},
    ))]
    metadata: BTreeMap<String, String>,
}

/// What is asked for, checked.
struct Asked {
    keys: Vec<Key>,
    cost: Cost,
    wait: Duration,
    /// In nanoseconds.
    ttl: Duration,
    metadata: Option<Metadata>,
}

/// Takes a reservation, at once or in its turn.
pub(super) async fn reserve(
    State(api): State<Arc<Api>>,
    keyed: Keyed,
    Body(fields): Body<ReserveFields>,
) -> Result<Response, Fault> {
    let asked = fields.checked(&api)?;
    let place = api.reservations.place().ok_or_else(no_place)?;
    let permit = acquire(&api, &asked).await?;
    open(&api, keyed, permit, place, asked)
}

async fn acquire(api: &Api, asked: &Asked) -> Result<Permit, Fault> {
    let limiter = api.limiter();
    let mut acquire = limiter.acquire_all(&asked.keys, &asked.cost).max_wait(asked.wait);
    if let Some(metadata) = &asked.metadata {
        acquire = acquire.metadata(Arc::clone(metadata));
    }
    let result = match acquire.arrive() {
        Some(result) => result,
        // It is refused at the first look.
        None if asked.wait.is_zero() => acquire.await,
        None => {
            let _waits = api.app.waiting.try_acquire().map_err(|_| too_many_wait())?;
            acquire.await
        }
    };
    result.map_err(|error| refused(api, &asked.keys, (&asked.cost, asked.wait), &error))
}

/// Hands a reservation out. One that its client never gets is given back, unless its idempotency key
/// lets the client ask for the answer again.
fn open(
    api: &Arc<Api>,
    keyed: Keyed,
    permit: Permit,
    place: Place,
    asked: Asked,
) -> Result<Response, Fault> {
    let granted_at = permit.granted_at();
    let about = Reservation {
        keys: asked.keys.into(),
        cost: asked.cost,
        granted_at,
        ttl: asked.ttl,
        expires_at: api.now() + asked.ttl,
        metadata: asked.metadata,
    };
    let opened = api.reservations.open(permit, place, about.clone());
    let id = opened.map_err(|permit| {
        permit.release();
        closed()
    })?;
    let told = OpenTold::new(id, &about);
    let body = serde_json::to_vec(&told).expect("texts and numbers are JSON");
    let handed = (!keyed.0).then(|| (Arc::clone(api), id));
    let mut response = Handed::new(body, handed).into_response();
    *response.status_mut() = StatusCode::CREATED;
    let location = HeaderValue::try_from(format!("/v1/reservations/{id}"));
    response.headers_mut().insert(LOCATION, location.expect("an id is ASCII"));
    describe(api.limiter(), &shown(&about.keys), response.headers_mut());
    response.extensions_mut().insert(KeepFor(asked.ttl));
    Ok(response)
}

impl ReserveFields {
    fn checked(self, api: &Api) -> Result<Asked, Fault> {
        let wait = Duration::from_millis(self.wait_ms.0);
        let longest = api.app.config.waiting.max_wait;
        Ok(Asked {
            keys: self.keys.checked(api.longest_key())?,
            cost: self.cost.cost()?,
            wait: longest.map_or(wait, |longest| wait.min(longest)),
            ttl: self.ttl_ms.map_or_else(|| api.ttl(), |ttl| Duration::from_millis(ttl.0)),
            metadata: metadata(self.metadata)?,
        })
    }
}

fn metadata(fields: BTreeMap<String, String>) -> Result<Option<Metadata>, Fault> {
    if fields.len() > MOST_METADATA {
        let many = fields.len();
        return Err(invalid(format!(
            "metadata: {many} entries; at most {MOST_METADATA} are allowed"
        )));
    }
    for (name, value) in &fields {
        let long = name.chars().count().max(value.chars().count());
        if name.is_empty() {
            return Err(invalid("metadata: a name must not be empty"));
        }
        if long > LONGEST_METADATA {
            return Err(invalid(format!(
                "metadata: a name or value of {long} characters; at most {LONGEST_METADATA} are allowed"
            )));
        }
    }
    let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MOST_METADATA_BYTES {
        return Err(meaningless(format!(
            "metadata: {bytes} bytes of names and values; at most {MOST_METADATA_BYTES} are allowed"
        )));
    }
    Ok((!fields.is_empty()).then(|| fields.into_iter().collect()))
}

fn no_place() -> Fault {
    full(
        "too_many_reservations",
        "as many reservations are open as the server keeps (serve.bounds.reservations); \
         settle or release some",
    )
}

fn too_many_wait() -> Fault {
    full("too_many_waiting", "as many requests wait as the server lets (serve.bounds.waiting)")
}

fn not_at_all() -> WaitMillis {
    0.into()
}

/// How many entries metadata may have, and how long their names and values may be (characters).
const MOST_METADATA: usize = 16;
const LONGEST_METADATA: usize = 256;

/// How many bytes the names and values of metadata take in all, since they are kept as long as the
/// reservation.
const MOST_METADATA_BYTES: usize = 2_048;
