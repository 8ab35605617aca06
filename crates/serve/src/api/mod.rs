//! Reservations, decisions, figures and quotas as JSON: `/v1`.
//!
//! | route | does |
//! |---|---|
//! | `POST /v1/reserve` | takes a reservation under one or several keys, at once or in its turn |
//! | `GET /v1/reservations/{id}` | what is known of it |
//! | `POST /v1/reservations/{id}/settle`, `/release` | ends it, by what it took or as never used |
//! | `POST /v1/reservations/{id}/renew` | holds it for longer |
//! | `POST /v1/decide` | whether a request would be let in; takes nothing |
//! | `GET /v1/stats`, `/v1/stats/{key}` | figures |
//! | `GET /v1/quotas`, `GET`, `PUT`, `DELETE /v1/quotas/{name}` | limits, in the fields of the configuration |
//! | `POST /v1/reset` | forgets what a key has used, or all |
//!
//! Amounts are whole numbers up to 2^53 - 1; times are those of RFC 3339 in UTC, to the nanosecond;
//! lengths of time are whole milliseconds, by names that end in `_ms`. A field that nobody knows is
//! refused. Bodies may come compressed (`content-encoding: gzip`), and are bounded by what they hold. What goes wrong is told as a problem document (RFC 9457), always with `code` and `detail`:
//! 400 where a request isn't of the form that `/openapi.json` tells, 422 where it is and can't be
//! meant, 429 where a limit falls short.
//!
//! A reservation that nobody settles, releases or renews ends at its expiry, charged as it was
//! reserved; so do all of them when the server has stopped, once the answers on their way have been
//! given. Each ends exactly once, and for a while a second try is told how. `Idempotency-Key` is
//! honoured wherever something is changed.
//!
//! Reservations, and the answers that belong to idempotency keys, are kept by the instance that has
//! given them, whatever state is shared: behind a balancer a client stays with its instance, since
//! another answers 404. So it is with the grants of `/rate`.
//!
//! Who settles is believed: far more than was reserved is charged as it is told, and puts its keys into
//! a debt that only time or a reset takes away.
//!
//! It doesn't decide anything: the limiter does. Nor does it know who asks.

mod answers;
mod cost;
mod decide;
mod fault;
mod handed;
mod id;
mod idempotency;
mod json;
mod keys;
mod openapi;
mod page;
mod quotas;
mod refusal;
mod reservation;
mod reservations;
mod reserve;
mod reset;
mod state;
mod stats;
mod time;
mod unique;
mod whole;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CACHE_CONTROL, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{any, delete, get, post, put};

use self::answers::Answers;
use self::fault::Fault;
use self::idempotency::Honour;
use self::state::Api;
use super::app::App;
use super::auth;
use super::compressed::{compressed, decompressed};
use super::problem::Problem;

pub(super) use self::reservations::Reservations;

/// Its routes.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let api = Api::start(app);
    let honour = |answers: &Arc<Answers>| {
        from_fn_with_state(Honour::new(&api.app, answers), idempotency::honour)
    };
    let client = Router::new()
        .route("/v1/reserve", post(reserve::reserve))
        .route("/v1/reservations/{id}/settle", post(reservation::settle))
        .route("/v1/reservations/{id}/release", post(reservation::release))
        .route("/v1/reservations/{id}/renew", post(reservation::renew))
        .route_layer(honour(&api.answers))
        .route("/v1/reservations/{id}", get(reservation::show))
        .route("/v1/decide", post(decide::decide));
    let client = decompressed(client).route_layer(auth::client(app));
    let reading = Router::new()
        .route("/v1/stats", get(stats::list))
        .route("/v1/stats/{key}", get(stats::one))
        .route("/v1/quotas", get(quotas::list))
        .route("/v1/quotas/{name}", get(quotas::one))
        .route_layer(auth::admin_read(app));
    let writing = Router::new()
        .route("/v1/quotas/{name}", put(quotas::put))
        .route("/v1/quotas/{name}", delete(quotas::delete))
        .route("/v1/reset", post(reset::reset))
        .route_layer(honour(&api.admin_answers));
    let writing = decompressed(writing).route_layer(auth::admin_write(app));
    let document = openapi::document(app);
    client
        .merge(reading)
        .merge(writing)
        .route("/openapi.json", get(async move || document.clone()))
        .method_not_allowed_fallback(async || not_allowed())
        .route("/v1/{*rest}", any(async || not_found()))
        .layer(DefaultBodyLimit::max(json::LONGEST_BODY))
        .layer(map_response(safe))
        .layer(compressed())
        .with_state(api)
}

/// Nobody keeps an answer, takes it for something else than it says, or shows it in a frame.
async fn safe(mut response: Response) -> Response {
    for (name, value) in SAFE {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn not_allowed() -> Fault {
    let detail = "this path doesn't take this method; those that it takes are in `allow`";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail).into()
}

fn not_found() -> Fault {
    let detail = "there is no such path; /openapi.json tells those that there are";
    Problem::new(StatusCode::NOT_FOUND, "unknown_path", detail).into()
}

const SAFE: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];
