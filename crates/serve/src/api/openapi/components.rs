use serde_json::{Value, json};

use super::schemas::Schemas;
use crate::api::idempotency::MAX_KEY_LENGTH;

/// Returns the components that operations refer to.
pub(super) fn components(schemas: &mut Schemas) -> Value {
    let max_key_length = schemas.max_key_length;
    let mut definitions = schemas.generator.take_definitions(true);
    if let Some(key) = definitions.get_mut("Key") {
        key["maxLength"] = max_key_length.into();
        key["description"] = format!("A key of at most {max_key_length} bytes in UTF-8.").into();
    }
    // The name of a quota marks a regular expression with `regex:` instead.
    if let Some(Value::Object(fields)) =
        definitions.get_mut("Quota").map(|quota| &mut quota["properties"])
    {
        fields.remove("regex");
    }
    definitions.insert("Problem".to_owned(), problem());
    json!({
        "schemas": definitions,
        "headers": headers(),
        "parameters": {"IdempotencyKey": idempotency_key()},
        "securitySchemes": {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "The client token (PACELINE_TOKEN), if one is set, or the admin token.",
            },
            "adminToken": {
                "type": "http",
                "scheme": "bearer",
                "description": "The admin token (PACELINE_ADMIN_TOKEN).",
            },
            "pacelineToken": {
                "type": "apiKey",
                "in": "header",
                "name": "x-paceline-token",
                "description": "The same token in a header of its own.",
            },
        },
    })
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "A problem document (RFC 9457).",
        "properties": {
            "type": {"type": "string", "format": "uri-reference"},
            "title": {"type": "string"},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": {
                "type": "string",
                "description": "A machine-readable error code. New codes may be added.",
                "examples": ["rpm_exceeded", "exceeds_capacity", "queue_full", "expired"],
            },
            "detail": {
                "type": "string",
                "description": "A human-readable description of the error and how to fix it.",
            },
            "retry_after": {"type": "integer", "minimum": 0, "description": RETRY_AFTER},
            "dimension": {"type": "string", "description": "The dimension whose limit is exceeded."},
            "key": {"type": "string", "description": "The key whose limit is exceeded."},
            "violated-policies": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The names of the exceeded policies, as in `RateLimit-Policy`.",
            },
        },
        "required": ["type", "title", "status", "code", "detail"],
    })
}

fn headers() -> Value {
    let text = json!({"type": "string"});
    json!({
        "Retry-After": {
            "description": RETRY_AFTER,
            "schema": {"type": "integer", "minimum": 0},
        },
        "RateLimit": {
            "description": "The remaining quota of each limit (draft-ietf-httpapi-ratelimit-headers); \
                            absent if there are no limits.",
            "schema": text,
        },
        "RateLimit-Policy": {
            "description": "The limits (draft-ietf-httpapi-ratelimit-headers); absent if there are none.",
            "schema": text,
        },
        "Accept-Encoding": {
            "description": "The supported content encodings; absent if the content type is wrong.",
            "schema": text,
        },
        "Location": {
            "description": "The path of the reservation.",
            "schema": {"type": "string", "format": "uri-reference"},
        },
        "Idempotency-Replayed": {
            "description": "Present if this is the stored response to an earlier request with the same \
                            Idempotency-Key.",
            "schema": {"const": "true"},
        },
    })
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "A unique key for the request. A retry with the same key and the same request \
                        returns the stored response without repeating the operation. Responses are \
                        stored for at least `serve.reservation_ttl`, and for the lifetime of the \
                        reservation if memory permits.",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": "^[!-~]+$"},
    })
}

const RETRY_AFTER: &str =
    "The time to retry after, in seconds, rounded up; absent if a retry cannot succeed.";
