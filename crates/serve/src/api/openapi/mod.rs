//! The OpenAPI 3.1 document of the server, generated from its routes and its request and response types.

mod components;
mod decisions;
mod operation;
mod operations;
mod parameter;
mod quotas;
mod rate;
mod reservations;
mod schemas;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use self::schemas::Schemas;
use crate::answer::StaticBody;
use crate::app::App;
use crate::route::Route;

/// The serialized document.
#[derive(Debug, Clone)]
pub(super) struct Document(StaticBody);

/// Returns the document of a server.
pub(super) fn document(app: &App) -> Document {
    let json = serde_json::to_vec(&value(app.serve.bounds.key));
    Document(StaticBody::new(json.expect("a JSON value can be serialized")))
}

impl Document {
    /// Returns the response to a request with these headers.
    pub(super) fn response(&self, request: &HeaderMap) -> Response {
        let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (headers, self.0.response(request)).into_response()
    }
}

fn value(max_key_length: usize) -> Value {
    let mut schemas = Schemas::new(max_key_length);
    let documented =
        |route: Route| Some((route.path().to_owned(), path_item(route, &mut schemas)?));
    let paths: Map<String, Value> = Route::all().filter_map(documented).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "paceline",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            "description": DESCRIPTION,
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "reservations", "description": "Reserve quota, then settle the actual usage."},
            {"name": "statistics", "description": "Usage of keys, and decisions without consuming quota."},
            {"name": "quotas", "description": "The limits of keys."},
            {"name": "rate", "description": "The rate-limit service, compatible with clients of GoCC."},
            {"name": "operations", "description": "Health checks, metrics and this document."},
        ],
        "paths": paths,
        "components": components::components(&mut schemas),
    })
}

/// Returns the operations of a route by method; `None` for routes that are not part of an API.
fn path_item(route: Route, schemas: &mut Schemas) -> Option<Value> {
    Some(match route {
        Route::Rate => json!({
            "get": rate::acquire("askRate", schemas),
            "post": rate::acquire("postRate", schemas),
        }),
        Route::RateGrant => json!({"delete": rate::release(schemas)}),
        Route::Debug => json!({"get": rate::debug()}),
        Route::DebugKey => json!({"get": rate::debug_key(schemas)}),
        Route::Reserve => json!({"post": reservations::reserve(schemas)}),
        Route::Reservation => json!({"get": reservations::get(schemas)}),
        Route::Settle => json!({"post": reservations::settle(schemas)}),
        Route::Release => json!({"post": reservations::release(schemas)}),
        Route::Renew => json!({"post": reservations::renew(schemas)}),
        Route::Decide => json!({"post": decisions::decide(schemas)}),
        Route::Stats => json!({"get": decisions::stats(schemas)}),
        Route::KeyStats => json!({"get": decisions::key_stats(schemas)}),
        Route::Quotas => json!({"get": quotas::list(schemas)}),
        Route::Quota => json!({
            "get": quotas::get(schemas),
            "put": quotas::put(schemas),
            "delete": quotas::delete(schemas),
        }),
        Route::Reset => json!({"post": quotas::reset(schemas)}),
        Route::OpenApi => json!({"get": operations::document()}),
        Route::Health => json!({"get": operations::health()}),
        Route::Ready => json!({"get": operations::ready()}),
        Route::Metrics => json!({"get": operations::metrics()}),
        Route::Page | Route::LiveEvents | Route::UnknownApi | Route::Proxy => return None,
    })
}

const DESCRIPTION: &str = "\
Rate limits for programs in any language. Amounts are integers. Times are RFC 3339 in UTC with \
nanoseconds. Durations are integers in milliseconds, in fields that end in `_ms`. Errors are problem \
documents (RFC 9457) with `code` and `detail`. Request bodies may be compressed (`Content-Encoding: \
gzip`); size limits apply to the decompressed body.

`POST /v1/reserve` takes a reservation. A reservation ends exactly once: it is settled with the actual \
cost, released if it was not used, or, if neither happens in time, it expires and is charged as reserved. \
A client that disconnects while it waits leaves the queue.

Reservations, grants of `/rate` and responses for an `Idempotency-Key` are stored by the server instance \
that created them, even if instances share their limits. Behind a load balancer, use sticky sessions; \
other instances respond with 404.

`/{upstream}/...`, which is not part of this document, forwards requests to the configured upstreams. \
Method, path, headers and body are forwarded unchanged as soon as the request fits its limits. A request \
that exceeds a limit is refused with 429, `Retry-After` and a problem document.";

#[cfg(test)]
mod tests;
