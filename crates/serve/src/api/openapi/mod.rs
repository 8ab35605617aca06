//! What the server answers, as OpenAPI 3.1 tells it: out of the types that are read and written.

mod components;
mod operation;
mod others;
mod own;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::app::App;

/// The document, as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Document(Bytes);

/// What this server answers.
pub(super) fn document(app: &App) -> Document {
    let json = serde_json::to_vec(&value(app)).expect("texts and numbers are JSON");
    Document(json.into())
}

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], self.0).into_response()
    }
}

fn value(app: &App) -> Value {
    let mut generator = generator();
    let key = app.serve.bounds.key;
    let mut paths = own::paths(&mut generator, key);
    paths.extend(others::paths(key));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            "description": ABOUT,
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "reservations", "description": "Reserve, then settle."},
            {"name": "figures", "description": "What is used, and what would be let in."},
            {"name": "quotas", "description": "What is limited."},
            {"name": "rate", "description": "The rate-limit service, as GoCC's clients ask it."},
            {"name": "operation", "description": "For who operates the server."},
        ],
        "paths": paths,
        "components": components::components(&mut generator, key),
    })
}

/// Schemas of JSON Schema 2020-12, as OpenAPI 3.1 has them, that refer to each other as its components.
fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
    });
    settings.into_generator()
}

const ABOUT: &str = "\
Limits for programs in any language. Amounts are whole numbers; times are those of RFC 3339 in UTC, to \
the nanosecond; lengths of time are whole milliseconds, by names that end in `_ms`. What goes wrong is \
told as a problem document (RFC 9457) with `code` and `detail`. Bodies of requests may come compressed \
(`Content-Encoding: gzip`); how long they may be is said of what they hold.

A reservation is taken by `POST /v1/reserve`, and ends exactly once: settled by what it really took, \
released if it was never used, or, if nobody says anything, at its expiry, charged as it was reserved. A \
client that goes while it waits leaves the queue.

A reservation, a grant of `/rate` and the answer that belongs to an `Idempotency-Key` are known to the \
instance of the server that has given them, and to no other, whatever limits instances share. Behind a \
balancer, keep a client at its instance (sticky sessions): elsewhere the id is unknown, 404.

Besides what is told here, `/{upstream}/...` forwards to the upstreams of the configuration, whatever \
their API: method, path, head and body pass unchanged, once the request fits its limits. A request that \
doesn't is answered 429 with `Retry-After`, as a problem document.";

#[cfg(test)]
mod tests;
