use serde_json::{Value, json};

use super::operation::Operation;
use super::parameter::{name, query};
use super::schemas::Schemas;

pub(super) fn acquire(id: &str, schemas: &Schemas) -> Value {
    let grant = json!({
        "type": "object",
        "properties": {"request_id": {"type": "string"}},
        "required": ["request_id"],
    });
    let contents = [(TEXT, text()), ("application/json", grant)];
    let operation = Operation::new("rate", id, "Acquire one request of a key")
        .description(
            "Responds with text exactly as GoCC does, or with JSON if the client accepts \
             `application/json`. Spaces around a key are ignored. Empty query parameters are ignored.",
        )
        .parameter(key(schemas.max_key_length))
        .parameter(query("canWait", "Wait until the request fits.", &json!({"type": "boolean"})))
        .parameter(query(
            "maxRequests",
            "The number of requests per window, if `serve.requests_can_set_rate` is set; -1 is ignored.",
            &json!({"type": "integer", "minimum": -1, "maximum": 1_000_000_000, "not": {"const": 0}}),
        ))
        .parameter(query(
            "maxRequestsInQueue",
            "The number of requests that may wait, if `serve.requests_can_mod_queue` is set; -1 is \
             ignored.",
            &json!({"type": "integer", "minimum": -1, "maximum": 1_000_000_000}),
        ))
        .parameter(query(
            "tokens",
            "The number of tokens to consume in addition to the request.",
            &json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64}),
        ))
        .parameter(query(
            "timeout",
            "The longest time to wait: `1.5s`, `200ms`, or a number of seconds.",
            &json!({"type": "string", "pattern": "^[0-9]{1,6}([.][0-9]{1,3})?(ms|s)?$"}),
        ))
        .response(200, "The request was granted. The body is the id of the grant.", &contents, &[]);
    let headers = ["Retry-After", "RateLimit", "RateLimit-Policy"];
    errors(operation, &[400, 401, 403])
        .response(
            429,
            "A limit is exceeded, other requests are waiting, or the queue is full.",
            &[],
            &headers,
        )
        .response(503, "The server is out of capacity, or stopping.", &[], &headers)
        .security("token")
        .into()
}

pub(super) fn release(schemas: &Schemas) -> Value {
    let id = json!({
        "name": "id",
        "in": "path",
        "required": true,
        "description": "The id of the grant.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 96},
    });
    let operation = Operation::new("rate", "giveBack", "Return a grant")
        .description("Only the server instance that granted the request accepts its return.")
        .parameter(key(schemas.max_key_length))
        .parameter(id)
        .response(200, "The grant was returned.", &[], &[]);
    errors(operation, &[400, 401, 404, 503]).security("token").into()
}

pub(super) fn debug() -> Value {
    let instances = json!({
        "type": "object",
        "properties": {"Instances": {"type": "object", "additionalProperties": instance()}},
        "required": ["Instances"],
    });
    let operation = Operation::new("rate", "debug", "List the active keys in GoCC's format").json(
        200,
        "The state of each key.",
        instances,
    );
    errors(operation, &[401, 403, 503]).security("adminToken").into()
}

pub(super) fn debug_key(schemas: &Schemas) -> Value {
    let operation = Operation::new("rate", "debugOf", "Get an active key in GoCC's format")
        .parameter(key(schemas.max_key_length))
        .json(200, "The state of the key.", instance());
    errors(operation, &[400, 401, 403, 404]).security("adminToken").into()
}

/// Adds error responses: text, or a problem document if the client accepts `application/json`.
pub(super) fn errors(operation: Operation, statuses: &[u16]) -> Operation {
    let problem = json!({"$ref": "#/components/schemas/Problem"});
    let contents = [(TEXT, text()), ("application/problem+json", problem)];
    let description = |status| match status {
        400 => "Invalid request.",
        401 => "The token is missing or invalid.",
        403 => "The operation requires the admin token, or the configuration disables a parameter.",
        404 => "Not found.",
        _ => "The server is out of capacity, or stopping.",
    };
    statuses.iter().fold(operation, |operation, &status| {
        operation.response(status, description(status), &contents, &[])
    })
}

fn instance() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "properties": {
            "Key": {"type": "string"},
            "Config": {
                "type": "object",
                "properties": {
                    "WindowMillis": count,
                    "MaxRequestsPerWindow": count,
                    "MaxRequestsInQueue": count,
                },
                "required": ["WindowMillis", "MaxRequestsPerWindow", "MaxRequestsInQueue"],
            },
            "NumApprovedThisWindow": count,
            "NumDeniedThisWindow": count,
            "NumWaiting": count,
            "Found": {"type": "boolean"},
        },
        "required": ["Key", "Config", "NumApprovedThisWindow", "NumDeniedThisWindow", "NumWaiting",
            "Found"],
    })
}

fn key(max_length: usize) -> Value {
    let mut parameter = name("key", max_length);
    // A key of spaces only is invalid. Unicode has one space more than ECMAScript (262, 22.2.2.9).
    parameter["schema"]["pattern"] = "[^\\s\\u0085]".into();
    parameter
}

fn text() -> Value {
    json!({"type": "string"})
}

const TEXT: &str = "text/plain";
