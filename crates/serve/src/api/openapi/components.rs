use schemars::SchemaGenerator;
use serde_json::{Value, json};

use crate::api::idempotency::LONGEST_KEY;

/// What the operations refer to; `longest_key` in bytes.
pub(super) fn components(generator: &mut SchemaGenerator, longest_key: usize) -> Value {
    let mut schemas = generator.take_definitions(true);
    if let Some(key) = schemas.get_mut("Key") {
        key["maxLength"] = longest_key.into();
        key["description"] = format!("A key: at most {longest_key} bytes in UTF-8.").into();
    }
    // Names of regular expressions start with `regex:` here.
    if let Some(Value::Object(fields)) =
        schemas.get_mut("Quota").map(|quota| &mut quota["properties"])
    {
        fields.remove("regex");
    }
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "schemas": schemas,
        "headers": headers(),
        "parameters": {"IdempotencyKey": idempotency_key()},
        "securitySchemes": {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "The token of clients (TOLLGATE_TOKEN), or of admins, where one is set.",
            },
            "adminToken": {
                "type": "http",
                "scheme": "bearer",
                "description": "The token of admins (TOLLGATE_ADMIN_TOKEN).",
            },
            "tollgateToken": {
                "type": "apiKey",
                "in": "header",
                "name": "x-tollgate-token",
                "description": "The same token.",
            },
        },
    })
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "Why a request isn't answered as it asks (RFC 9457).",
        "properties": {
            "type": {"type": "string", "format": "uri-reference"},
            "title": {"type": "string"},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": {
                "type": "string",
                "description": "In one word, for programs; there may be new ones.",
                "examples": ["rpm_exceeded", "exceeds_capacity", "queue_full", "expired"],
            },
            "detail": {"type": "string", "description": "What, where, and what to do."},
            "retry_after": {
                "type": "integer",
                "minimum": 0,
                "description": "In seconds, rounded up; left out where it is no use to come back.",
            },
            "dimension": {"type": "string", "description": "What falls short."},
            "key": {"type": "string", "description": "The key that binds."},
            "violated-policies": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["type", "title", "status", "code", "detail"],
    })
}

fn headers() -> Value {
    let text = json!({"type": "string"});
    json!({
        "Retry-After": {
            "description": "In seconds, rounded up; left out where it is no use to come back.",
            "schema": {"type": "integer", "minimum": 0},
        },
        "RateLimit": {
            "description": "What is left of each limit (draft-ietf-httpapi-ratelimit-headers); left out \
                            where nothing is limited.",
            "schema": text,
        },
        "RateLimit-Policy": {
            "description": "Each limit (draft-ietf-httpapi-ratelimit-headers); left out where nothing \
                            is limited.",
            "schema": text,
        },
        "Accept-Encoding": {
            "description": "Encodings of bodies that are known; left out where something else is wrong.",
            "schema": text,
        },
        "Location": {
            "description": "The reservation.",
            "schema": {"type": "string", "format": "uri-reference"},
        },
        "Idempotency-Replayed": {
            "description": "There if this answer was given before, to a request with the same key.",
            "schema": {"const": "true"},
        },
    })
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "One for each thing that is to be done once: who sends the same request again \
                        with the same key gets the same answer, and nothing is done twice. Kept for \
                        `serve.reservation_ttl` at least, and as long as the reservation while the \
                        server has room.",
        "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
    })
}
