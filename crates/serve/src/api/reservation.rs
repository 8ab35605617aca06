use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api_state::Api;
use super::bounded_integer::TtlMillis;
use super::cost::CostFields;
use super::error::ApiError;
use super::extract::{JsonBody, OptionalJsonBody, PathParameter};
use super::idempotency::KeepFor;
use super::reservation_id::ReservationId;
use super::reservations::{
    EndedReservation, Outcome, Reservation, ReservationError, ReservationState,
};
use super::time::{Time, millis};
use crate::problem::Problem;

/// An open reservation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "OpenReservation")]
pub(super) struct OpenResponse {
    /// The id. Any client that knows it can end the reservation.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    id: String,
    /// Always `open`.
    state: OpenState,
    /// The charged keys.
    keys: Vec<String>,
    /// The reserved cost.
    cost: CostFields,
    /// The time of the grant.
    granted_at: Time,
    /// The time at which the reservation expires and is charged as reserved.
    expires_at: Time,
    /// The time from the grant or the last renewal until expiry, in milliseconds.
    ttl_ms: u64,
    /// The metadata of the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    metadata: BTreeMap<String, String>,
}

/// A reservation that has ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "EndedReservation")]
pub(super) struct EndedResponse {
    /// The id.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    id: String,
    /// The outcome.
    state: EndedState,
    /// The time of the grant.
    granted_at: Time,
    /// The time of the end.
    ended_at: Time,
    /// The charged cost; absent if the reservation was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    charged: Option<CostFields>,
}

/// An open or recently ended reservation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Reservation")]
pub(super) enum ReservationResponse {
    Open(OpenResponse),
    Ended(EndedResponse),
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum OpenState {
    Open,
}

/// The outcome of a reservation.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EndedState {
    /// Charged the actual cost.
    Settled,
    /// Not charged.
    Released,
    /// Charged as reserved, because it was neither settled nor released in time.
    Expired,
    /// Charged as reserved, because the server stopped.
    Closed,
}

/// The actual cost of a reserved request.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Settle")]
pub(super) struct SettleRequest {
    /// The actual cost. A dimension that is left out is charged as reserved.
    cost: CostFields,
}

/// The new lifetime of a reservation.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Renew")]
pub(super) struct RenewRequest {
    /// The time from now until expiry, in milliseconds. Default: the previous `ttl_ms`.
    ttl_ms: Option<TtlMillis>,
}

/// Handles `GET /v1/reservations/{id}`.
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    PathParameter(name): PathParameter,
) -> Result<Json<ReservationResponse>, ApiError> {
    let id = id(&name)?;
    Ok(Json(match api.reservations.get(id, api.now())? {
        ReservationState::Open(reservation) => {
            ReservationResponse::Open(OpenResponse::new(id, &reservation))
        }
        ReservationState::Ended(ended) => {
            ReservationResponse::Ended(EndedResponse::new(id, &ended))
        }
    }))
}

/// Handles `POST /v1/reservations/{id}/settle`.
pub(super) async fn settle(
    State(api): State<Arc<Api>>,
    PathParameter(name): PathParameter,
    JsonBody(fields): JsonBody<SettleRequest>,
) -> Result<Json<EndedResponse>, ApiError> {
    let id = id(&name)?;
    let charged = |reserved: &_| fields.cost.apply_to(Clone::clone(reserved));
    let ended = api.reservations.settle::<ApiError>(id, api.now(), charged)?;
    Ok(Json(EndedResponse::new(id, &ended)))
}

/// Handles `POST /v1/reservations/{id}/release`.
pub(super) async fn release(
    State(api): State<Arc<Api>>,
    PathParameter(name): PathParameter,
) -> Result<Json<EndedResponse>, ApiError> {
    let id = id(&name)?;
    let ended = api.reservations.release(id, api.now())?;
    Ok(Json(EndedResponse::new(id, &ended)))
}

/// Handles `POST /v1/reservations/{id}/renew`.
pub(super) async fn renew(
    State(api): State<Arc<Api>>,
    PathParameter(name): PathParameter,
    OptionalJsonBody(fields): OptionalJsonBody<RenewRequest>,
) -> Result<Response, ApiError> {
    let id = id(&name)?;
    let reservation = api.reservations.renew(
        id,
        api.now(),
        fields.ttl_ms.map(|ttl| Duration::from_millis(ttl.0)),
    )?;
    let mut response = Json(OpenResponse::new(id, &reservation)).into_response();
    response.extensions_mut().insert(KeepFor(reservation.ttl));
    Ok(response)
}

impl OpenResponse {
    pub(super) fn new(id: ReservationId, reservation: &Reservation) -> Self {
        let metadata = reservation.metadata.iter().flat_map(|metadata| metadata.iter().cloned());
        Self {
            id: id.to_string(),
            state: OpenState::Open,
            keys: reservation.keys.iter().map(ToString::to_string).collect(),
            cost: (&reservation.cost).into(),
            granted_at: Time(reservation.granted_at),
            expires_at: Time(reservation.expires_at),
            ttl_ms: millis(reservation.ttl),
            metadata: metadata.collect(),
        }
    }
}

impl EndedResponse {
    fn new(id: ReservationId, ended: &EndedReservation) -> Self {
        Self {
            id: id.to_string(),
            state: match ended.outcome {
                Outcome::Settled => EndedState::Settled,
                Outcome::Released => EndedState::Released,
                Outcome::Expired => EndedState::Expired,
                Outcome::Closed => EndedState::Closed,
            },
            granted_at: Time(ended.granted_at),
            ended_at: Time(ended.ended_at),
            charged: ended.charged.as_ref().map(CostFields::from),
        }
    }
}

impl From<ReservationError> for ApiError {
    fn from(error: ReservationError) -> Self {
        let ReservationError::Ended(EndedReservation { outcome, ended_at, .. }) = error else {
            return unknown();
        };
        let at = Time(ended_at);
        let (status, code, detail) = match outcome {
            Outcome::Settled => {
                let detail = format!("the reservation was already settled at {at}");
                (StatusCode::CONFLICT, "already_settled", detail)
            }
            Outcome::Released => {
                let detail = format!("the reservation was already released at {at}");
                (StatusCode::CONFLICT, "already_released", detail)
            }
            Outcome::Expired => {
                let detail = format!(
                    "the reservation expired at {at} and was charged as reserved; settle earlier, \
                     renew it, or request a longer ttl_ms"
                );
                (StatusCode::GONE, "expired", detail)
            }
            Outcome::Closed => {
                let detail = format!(
                    "the reservation was charged as reserved at {at}, when the server stopped"
                );
                (StatusCode::GONE, "closed", detail)
            }
        };
        Problem::new(status, code, detail).into()
    }
}

/// Parses the id of a path.
fn id(name: &str) -> Result<ReservationId, ApiError> {
    ReservationId::parse(name).ok_or_else(unknown)
}

fn unknown() -> ApiError {
    let detail = "no reservation has this id on this instance: it ended long ago, never existed, or \
                  was granted by another instance";
    Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail).into()
}
