use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::CostFields;
use super::fault::Fault;
use super::id::Id;
use super::idempotency::KeepFor;
use super::json::{Body, Name, OptionalBody};
use super::reservations::{Ended, How, Known, Missing, Reservation};
use super::state::Api;
use super::time::{Time, millis};
use super::whole::TtlMillis;
use crate::problem::Problem;

/// A reservation that is held.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "OpenReservation")]
pub(super) struct OpenTold {
    /// What it is called. Who knows it may end it.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    id: String,
    /// That it is open.
    state: OpenState,
    /// What it is charged to.
    keys: Vec<String>,
    /// What it reserves.
    cost: CostFields,
    /// When it was granted.
    granted_at: Time,
    /// When it ends by itself, charged as reserved.
    expires_at: Time,
    /// How long after its grant or its last renewal that is, in milliseconds.
    ttl_ms: u64,
    /// What its client has given along.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    metadata: BTreeMap<String, String>,
}

/// A reservation that has ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "EndedReservation")]
pub(super) struct EndedTold {
    /// What it is called.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    id: String,
    /// How it has ended.
    state: EndedState,
    /// When it was granted.
    granted_at: Time,
    /// When it ended.
    ended_at: Time,
    /// What it was charged; nothing if it was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    charged: Option<CostFields>,
}

/// What is known of a reservation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Reservation")]
pub(super) enum Told {
    Open(OpenTold),
    Ended(EndedTold),
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum OpenState {
    Open,
}

/// How a reservation has ended.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EndedState {
    /// Charged what it took.
    Settled,
    /// Charged nothing.
    Released,
    /// Charged as reserved: nobody said anything.
    Expired,
    /// Charged as reserved: the server is stopping.
    Closed,
}

/// How a reservation turned out.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Settle")]
pub(super) struct SettleFields {
    /// What it really took. A dimension that is left out took what was reserved.
    cost: CostFields,
}

/// How much longer a reservation is held.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Renew")]
pub(super) struct RenewFields {
    /// How long from now on, in milliseconds. Default: as long as at first.
    ttl_ms: Option<TtlMillis>,
}

/// What is known of it.
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Name(name): Name,
) -> Result<Json<Told>, Fault> {
    let id = id(&name)?;
    Ok(Json(match api.reservations.look(id, api.now())? {
        Known::Open(about) => Told::Open(OpenTold::new(id, &about)),
        Known::Ended(ended) => Told::Ended(EndedTold::new(id, &ended)),
    }))
}

/// Ends it, charged what it took.
pub(super) async fn settle(
    State(api): State<Arc<Api>>,
    Name(name): Name,
    Body(fields): Body<SettleFields>,
) -> Result<Json<EndedTold>, Fault> {
    let id = id(&name)?;
    let charged = |reserved: &_| fields.cost.over(Clone::clone(reserved));
    let ended = api.reservations.settle::<Fault>(id, api.now(), charged)?;
    Ok(Json(EndedTold::new(id, &ended)))
}

/// Ends it, charged nothing.
pub(super) async fn release(
    State(api): State<Arc<Api>>,
    Name(name): Name,
) -> Result<Json<EndedTold>, Fault> {
    let id = id(&name)?;
    let ended = api.reservations.release(id, api.now())?;
    Ok(Json(EndedTold::new(id, &ended)))
}

/// Holds it for longer.
pub(super) async fn renew(
    State(api): State<Arc<Api>>,
    Name(name): Name,
    OptionalBody(fields): OptionalBody<RenewFields>,
) -> Result<Response, Fault> {
    let id = id(&name)?;
    let about = api.reservations.renew(
        id,
        api.now(),
        fields.ttl_ms.map(|ttl| Duration::from_millis(ttl.0)),
    )?;
    let mut response = Json(OpenTold::new(id, &about)).into_response();
    response.extensions_mut().insert(KeepFor(about.ttl));
    Ok(response)
}

impl OpenTold {
    pub(super) fn new(id: Id, about: &Reservation) -> Self {
        let metadata = about.metadata.iter().flat_map(|metadata| metadata.iter().cloned());
        Self {
            id: id.to_string(),
            state: OpenState::Open,
            keys: about.keys.iter().map(ToString::to_string).collect(),
            cost: (&about.cost).into(),
            granted_at: Time(about.granted_at),
            expires_at: Time(about.expires_at),
            ttl_ms: millis(about.ttl),
            metadata: metadata.collect(),
        }
    }
}

impl EndedTold {
    fn new(id: Id, ended: &Ended) -> Self {
        Self {
            id: id.to_string(),
            state: match ended.how {
                How::Settled => EndedState::Settled,
                How::Released => EndedState::Released,
                How::Expired => EndedState::Expired,
                How::Closed => EndedState::Closed,
            },
            granted_at: Time(ended.granted_at),
            ended_at: Time(ended.ended_at),
            charged: ended.charged.as_ref().map(CostFields::from),
        }
    }
}

impl From<Missing> for Fault {
    fn from(missing: Missing) -> Self {
        let Missing::Ended(Ended { how, ended_at, .. }) = missing else { return unknown() };
        let at = Time(ended_at);
        let (status, code, detail) = match how {
            How::Settled => {
                let detail = format!("the reservation was settled at {at}; it ends only once");
                (StatusCode::CONFLICT, "already_settled", detail)
            }
            How::Released => {
                let detail = format!("the reservation was released at {at}; it ends only once");
                (StatusCode::CONFLICT, "already_released", detail)
            }
            How::Expired => {
                let detail = format!(
                    "the reservation expired at {at} and is charged as it was reserved; \
                     settle sooner, renew it, or ask for a longer ttl_ms"
                );
                (StatusCode::GONE, "expired", detail)
            }
            How::Closed => {
                let detail = format!(
                    "the reservation ended with the server at {at}, charged as it was reserved"
                );
                (StatusCode::GONE, "closed", detail)
            }
        };
        Problem::new(status, code, detail).into()
    }
}

/// The reservation that a path names.
fn id(name: &str) -> Result<Id, Fault> {
    Id::parse(name).ok_or_else(unknown)
}

fn unknown() -> Fault {
    let detail = "no reservation of this id is known here: it ended long ago, never was, or is another instance's";
    Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail).into()
}
