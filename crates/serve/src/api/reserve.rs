use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use paceline::Key;
use schemars::JsonSchema;
use serde::Deserialize;

use super::api_state::Api;
use super::bounded_integer::{TtlMillis, WaitMillis};
use super::cost::CostFields;
use super::error::{ApiError, invalid, stopping, unavailable, unprocessable};
use super::extract::JsonBody;
use super::idempotency::{HasIdempotencyKey, KeepFor};
use super::keys::{KeyList, KeyText, public_keys};
use super::refusal::refusal_error;
use super::reservation::OpenResponse;
use super::reservation_body::ReservationBody;
use super::reservations::Reservation;
use crate::budget::BudgetPermit;
use crate::client_address::ClientAddress;
use paceline::limiter::{Metadata, Permit, Priority};
use paceline::middleware::respond::append_headers;
use paceline::quota::Cost;
use paceline_config::section::PriorityText;

/// A request for a reservation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reserve")]
pub(super) struct ReserveRequest {
    /// The keys to charge, all or none; narrowest first, such as a tenant before its model.
    keys: KeyList,
    /// The cost to reserve. Default: one request.
    #[serde(default)]
    cost: CostFields,
    /// The longest time to wait in the queue, in milliseconds; capped by `waiting.max_wait` of the
    /// server's configuration. Default: 0 (do not wait).
    #[serde(default = "no_wait")]
    wait_ms: WaitMillis,
    /// The priority in the queue: `interactive` (10), `normal` (0), `batch` (-10), or a number from -128 to
    /// 127; the highest goes first. Default: that of the first name in `waiting.bands` of the server's
    /// configuration that matches one of the keys, else `normal`.
    #[serde(default)]
    priority: Option<PriorityText>,
    /// The flow that the request belongs to, such as a user: while requests wait, flows share the limits
    /// fairly. Default: the key of the kind `waiting.fair_by` of the server's configuration.
    #[serde(default)]
    flow: Option<KeyText>,
    /// The time until the reservation expires unless it is settled, released or renewed, in
    /// milliseconds. Default: `serve.reservation_ttl` of the server's configuration.
    #[serde(default)]
    ttl_ms: Option<TtlMillis>,
    /// Names and values that are returned with the reservation and attached to its events; at most 2,048
    /// bytes of UTF-8 in total. Do not include secrets.
    #[serde(default)]
    #[schemars(extend(
        "maxProperties" = MAX_METADATA,
        "propertyNames" = {"minLength": 1, "maxLength": MAX_METADATA_LENGTH},
        "additionalProperties" = {"type": "string", "maxLength": MAX_METADATA_LENGTH},
    ))]
    metadata: BTreeMap<String, String>,
}

/// A validated request.
struct ValidatedRequest {
    keys: Vec<Key>,
    cost: Cost,
    wait: Duration,
    priority: Option<Priority>,
    flow: Option<String>,
    ttl: Duration,
    metadata: Option<Metadata>,
}

/// Handles `POST /v1/reserve`.
pub(super) async fn reserve(
    State(api): State<Arc<Api>>,
    keyed: HasIdempotencyKey,
    client: ClientAddress,
    JsonBody(fields): JsonBody<ReserveRequest>,
) -> Result<Response, ApiError> {
    let request = fields.validate(&api)?;
    let admission = api.reservations.admit(client).map_err(|_| too_many_reservations())?;
    let permit = acquire(&api, &request).await?;
    open(&api, keyed, permit, admission, request)
}

async fn acquire(api: &Api, request: &ValidatedRequest) -> Result<Permit, ApiError> {
    let limiter = api.limiter();
    let mut acquire = limiter.acquire_all(&request.keys, &request.cost).max_wait(request.wait);
    if let Some(metadata) = &request.metadata {
        acquire = acquire.metadata(Arc::clone(metadata));
    }
    if let Some(priority) = request.priority {
        acquire = acquire.priority(priority);
    }
    if let Some(flow) = &request.flow {
        acquire = acquire.flow(flow);
    }
    let result = match acquire.arrive() {
        Some(result) => result,
        // Without a wait the first poll decides.
        None if request.wait.is_zero() => acquire.await,
        None => {
            let _waiting = api.app.waiting.try_acquire().map_err(|_| queue_full())?;
            acquire.await
        }
    };
    result.map_err(|error| refusal_error(api, &request.keys, &request.cost, request.wait, &error))
}

/// Opens a reservation and returns the response. If the client disconnects before it receives the
/// response, the reservation is released, unless an idempotency key lets the client request the
/// response again.
fn open(
    api: &Arc<Api>,
    keyed: HasIdempotencyKey,
    permit: Permit,
    admission: BudgetPermit,
    request: ValidatedRequest,
) -> Result<Response, ApiError> {
    let granted_at = permit.granted_at();
    let reservation = Reservation {
        keys: request.keys.into(),
        cost: request.cost,
        granted_at,
        ttl: request.ttl,
        expires_at: api.now() + request.ttl,
        metadata: request.metadata,
    };
    let opened = api.reservations.open(permit, admission, reservation.clone());
    let id = opened.map_err(|permit| {
        permit.release();
        stopping()
    })?;
    let response = OpenResponse::new(id, &reservation);
    let body = serde_json::to_vec(&response).expect("serialization to JSON cannot fail");
    let release = (!keyed.0).then(|| (Arc::clone(api), id));
    let mut response = ReservationBody::new(body, release).into_response();
    *response.status_mut() = StatusCode::CREATED;
    let location = HeaderValue::try_from(format!("/v1/reservations/{id}"));
    response.headers_mut().insert(LOCATION, location.expect("an id is ASCII"));
    append_headers(api.limiter(), &public_keys(&reservation.keys), response.headers_mut());
    response.extensions_mut().insert(KeepFor(request.ttl));
    Ok(response)
}

impl ReserveRequest {
    fn validate(self, api: &Api) -> Result<ValidatedRequest, ApiError> {
        let wait = Duration::from_millis(self.wait_ms.0);
        let max_wait = api.app.max_wait();
        let max_length = api.max_key_length();
        let flow = self.flow.as_ref().map(|flow| flow.validate("flow", max_length));
        let flow = flow.transpose()?.map(str::to_owned);
        Ok(ValidatedRequest {
            keys: self.keys.validate(max_length)?,
            cost: self.cost.cost()?,
            wait: max_wait.map_or(wait, |max_wait| wait.min(max_wait)),
            priority: self.priority.map(|PriorityText(priority)| priority),
            flow,
            ttl: self.ttl_ms.map_or_else(|| api.ttl(), |ttl| Duration::from_millis(ttl.0)),
            metadata: metadata(self.metadata)?,
        })
    }
}

fn metadata(fields: BTreeMap<String, String>) -> Result<Option<Metadata>, ApiError> {
    if fields.len() > MAX_METADATA {
        let count = fields.len();
        return Err(invalid(format!(
            "metadata: {count} entries; at most {MAX_METADATA} are allowed"
        )));
    }
    for (name, value) in &fields {
        let length = name.chars().count().max(value.chars().count());
        if name.is_empty() {
            return Err(invalid("metadata: a name must not be empty"));
        }
        if length > MAX_METADATA_LENGTH {
            return Err(invalid(format!(
                "metadata: a name or value has {length} characters; at most {MAX_METADATA_LENGTH} are allowed"
            )));
        }
    }
    let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_METADATA_BYTES {
        return Err(unprocessable(format!(
            "metadata: {bytes} bytes of names and values; at most {MAX_METADATA_BYTES} are allowed"
        )));
    }
    Ok((!fields.is_empty()).then(|| fields.into_iter().collect()))
}

fn too_many_reservations() -> ApiError {
    unavailable(
        "too_many_reservations",
        "too many reservations are open (serve.bounds.reservations); settle or release some",
    )
}

fn queue_full() -> ApiError {
    unavailable("too_many_waiting", "the wait queue is full (serve.bounds.waiting)")
}

fn no_wait() -> WaitMillis {
    0.into()
}

/// The maximum number of metadata entries, and of characters of a name or value.
const MAX_METADATA: usize = 16;
const MAX_METADATA_LENGTH: usize = 256;

/// The maximum total size of metadata, which is kept as long as the reservation.
const MAX_METADATA_BYTES: usize = 2_048;
