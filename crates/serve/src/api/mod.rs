//! The JSON API (`/v1`): reservations, decisions, statistics and quotas.
//!
//! | route | operation |
//! |---|---|
//! | `POST /v1/reserve` | takes a reservation of one or several keys, immediately or after waiting |
//! | `GET /v1/reservations/{id}` | returns a reservation |
//! | `POST /v1/reservations/{id}/settle`, `/release` | ends it with its actual cost, or without a charge |
//! | `POST /v1/reservations/{id}/renew` | extends it |
//! | `POST /v1/decide` | checks whether a request would be admitted, without consuming quota |
//! | `GET /v1/stats`, `/v1/stats/{key}` | return usage |
//! | `GET /v1/quotas`, `GET`, `PUT`, `DELETE /v1/quotas/{name}` | manage quotas, in the format of the configuration |
//! | `POST /v1/reset` | resets the usage of one key or all keys |
//!
//! Amounts are integers up to 2^53 - 1; times are RFC 3339 in UTC with nanoseconds; durations are
//! integers in milliseconds, in fields that end in `_ms`. Unknown fields are errors. Request bodies may
//! be compressed (`content-encoding: gzip`); size limits apply to the decompressed body. Errors are
//! problem documents (RFC 9457) with `code` and `detail`: 400 for a request that violates the schema in
//! `/openapi.json`, 422 for an invalid value, 429 for an exceeded limit.
//!
//! A reservation that is neither settled, released nor renewed in time expires and is charged as
//! reserved; so are all open reservations when the server stops. Each ends exactly once; for a while,
//! further attempts return how it ended. All operations that change something support
//! `Idempotency-Key`.
//!
//! Reservations, grants of `/rate` and stored responses belong to the instance that created them, even
//! if instances share state: another instance responds with 404. Use sticky sessions behind a load
//! balancer.
//!
//! The cost of a settlement is trusted: a cost far above the reservation is charged as stated, and puts
//! the keys into debt until time passes or they are reset.

mod api_state;
mod body;
mod bounded_integer;
mod cost;
mod decide;
mod error;
mod extract;
mod idempotency;
mod keys;
mod openapi;
mod page_request;
mod quotas;
mod refusal;
mod reservation;
mod reservation_body;
mod reservation_id;
pub(super) mod reservations;
mod reserve;
mod reset;
mod response_cache;
mod stats;
mod time;
mod unique_fields;

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post, put};
use tower_http::set_header::SetResponseHeaderLayer;

use self::api_state::Api;
use self::error::ApiError;
use self::idempotency::IdempotencyLayer;
use self::response_cache::ResponseCache;
use super::answer;
use super::app::App;
use super::auth;
use super::problem::Problem;
use super::proxy;
use super::route::{self, Route};

/// Returns the routes of the JSON API.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let api = Api::start(app);
    let idempotent = |responses: &Arc<ResponseCache>| {
        from_fn_with_state(IdempotencyLayer::new(&api.app, responses), idempotency::idempotent)
    };
    let client = Router::new()
        .route(Route::Reserve.path(), post(reserve::reserve))
        .route(Route::Settle.path(), post(reservation::settle))
        .route(Route::Release.path(), post(reservation::release))
        .route(Route::Renew.path(), post(reservation::renew))
        .route_layer(idempotent(&api.responses))
        .route(Route::Reservation.path(), get(reservation::show))
        .route(Route::Decide.path(), post(decide::decide));
    let read_body = from_fn_with_state(Arc::clone(app), body::read);
    let client = client.route_layer(read_body.clone()).route_layer(auth::client(app));
    let reading = Router::new()
        .route(Route::Stats.path(), get(stats::list))
        .route(Route::KeyStats.path(), get(stats::one))
        .route(Route::Quotas.path(), get(quotas::list))
        .route(Route::Quota.path(), get(quotas::one))
        .route_layer(auth::admin_read(app));
    let writing = Router::new()
        .route(Route::Quota.path(), put(quotas::put).delete(quotas::delete))
        .route(Route::Reset.path(), post(reset::reset))
        .route_layer(idempotent(&api.admin_responses));
    let writing = writing.route_layer(read_body).route_layer(auth::admin_write(app));
    let (document, unknown) = (openapi::document(app), Arc::clone(app));
    let router = client
        .merge(reading)
        .merge(writing)
        .layer(from_fn_with_state(Arc::clone(app), answer::complete))
        .route(
            Route::OpenApi.path(),
            get(async move |headers: HeaderMap| document.response(&headers)),
        )
        .method_not_allowed_fallback(async || not_allowed())
        .route(route::UNKNOWN_API, any(move |uri: Uri| ready(not_found(&unknown, &uri))))
        .with_state(api);
    SECURITY_HEADERS.into_iter().fold(router, |router, (name, value)| {
        let value = HeaderValue::from_static(value);
        router.layer(SetResponseHeaderLayer::if_not_present(name, value))
    })
}

fn not_allowed() -> ApiError {
    let detail = "method not allowed for this path; `allow` lists the allowed methods";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail).into()
}

/// Returns the response to a path that the API doesn't have: one of a provider's that lacks the name of its upstream, if
/// there are upstreams.
fn not_found(app: &App, uri: &Uri) -> Response {
    if !app.serve.upstreams.is_empty() {
        return proxy::unknown_upstream(app, uri);
    }
    let detail = "no such path; /openapi.json lists the available ones";
    Problem::new(StatusCode::NOT_FOUND, "unknown_path", detail).into_response()
}

/// Disables caching, content sniffing and framing.
const SECURITY_HEADERS: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];
