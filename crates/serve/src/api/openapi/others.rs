use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::own::name;

/// The paths of the routes that are none of the JSON API; `longest_key` in bytes.
pub(super) fn paths(longest_key: usize) -> Map<String, Value> {
    let mut paths = Map::new();
    let mut path = |path: &str, operations: Value| paths.insert(path.to_owned(), operations);
    let rate = json!({"get": ask("askRate", longest_key), "post": ask("postRate", longest_key)});
    path("/rate/{key}", rate);
    path("/rate/{key}/{id}", json!({"delete": give_back(longest_key)}));
    path("/debug", json!({"get": debug()}));
    path("/debug/{key}", json!({"get": debug_of(longest_key)}));
    path("/healthz", json!({"get": health()}));
    path("/readyz", json!({"get": ready()}));
    path("/metrics", json!({"get": metrics()}));
    paths
}

fn ask(id: &str, longest_key: usize) -> Value {
    let grant = json!({
        "type": "object",
        "properties": {"request_id": {"type": "string"}},
        "required": ["request_id"],
    });
    let told = [(TEXT, text()), ("application/json", grant)];
    let operation = Operation::new("rate", id, "Ask for one request of this key")
        .about(
            "Answers text, byte for byte as GoCC does, or JSON to who accepts `application/json`. The \
             spaces around a key are none of it. What is left empty in the query isn't given.",
        )
        .takes(key(longest_key))
        .takes(query("canWait", "Whether it waits for its turn.", &json!({"type": "boolean"})))
        .takes(query(
            "maxRequests",
            "By how many requests per window it is judged, where the configuration lets it say so; -1 \
             is as if it weren't there.",
            &json!({"type": "integer", "minimum": -1, "maximum": 1_000_000_000, "not": {"const": 0}}),
        ))
        .takes(query(
            "maxRequestsInQueue",
            "Behind how many it is willing to wait, where the configuration lets it say so; -1 is as \
             if it weren't there.",
            &json!({"type": "integer", "minimum": -1, "maximum": 1_000_000_000}),
        ))
        .takes(query(
            "tokens",
            "How many tokens it takes besides.",
            &json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64}),
        ))
        .takes(query(
            "timeout",
            "How long it waits: `1.5s`, `200ms`, or seconds.",
            &json!({"type": "string", "pattern": "^[0-9]{1,6}([.][0-9]{1,3})?(ms|s)?$"}),
        ))
        .answers_as(200, "It is granted: the id by which it can be given back.", &told, &[]);
    failing(operation, &[400, 401, 403]).secured("token").limited().into()
}

fn give_back(longest_key: usize) -> Value {
    let id = json!({
        "name": "id",
        "in": "path",
        "required": true,
        "description": "What was answered when it was granted.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 96},
    });
    let operation = Operation::new("rate", "giveBack", "Give a grant back, while it counts")
        .about("At the instance of the server that has granted it: others don't know it.")
        .takes(key(longest_key))
        .takes(id)
        .answers_as(200, "It is given back.", &[], &[]);
    failing(operation, &[400, 401, 404, 503]).secured("token").into()
}

fn debug() -> Value {
    let instances = json!({
        "type": "object",
        "properties": {"Instances": {"type": "object", "additionalProperties": instance()}},
        "required": ["Instances"],
    });
    let operation = Operation::new("rate", "debug", "All keys in use, as GoCC tells them")
        .answers(200, "By key.", instances);
    failing(operation, &[401, 403]).secured("adminToken").into()
}

fn debug_of(longest_key: usize) -> Value {
    let operation = Operation::new("rate", "debugOf", "A key in use, as GoCC tells it")
        .takes(key(longest_key))
        .answers(200, "The key.", instance());
    failing(operation, &[400, 401, 403, 404]).secured("adminToken").into()
}

fn health() -> Value {
    let operation = Operation::new("operation", "healthz", "Whether the server lives");
    operation.answers_as(200, "It does.", &[(TEXT, text())], &[]).into()
}

fn ready() -> Value {
    let operation = Operation::new("operation", "readyz", "Whether the server should be asked");
    operation
        .answers_as(200, "It should.", &[(TEXT, text())], &[])
        .fails(503, "It stops, or the store of its shared limits can't be reached.")
        .into()
}

fn metrics() -> Value {
    let operation = Operation::new("operation", "metrics", "Figures for Prometheus").answers_as(
        200,
        "Its text format.",
        &[("text/plain", text())],
        &[],
    );
    failing(operation, &[401, 403]).secured("adminToken").into()
}

/// What goes wrong is told as text, or to who accepts `application/json` as a problem document.
fn failing(operation: Operation, statuses: &[u16]) -> Operation {
    let problem = json!({"$ref": "#/components/schemas/Problem"});
    let contents = [(TEXT, text()), ("application/problem+json", problem)];
    let what = |status| match status {
        400 => "The request can't be read.",
        401 => "The token is missing or wrong.",
        403 => "This is for admins, or the configuration doesn't let requests say that.",
        404 => "There is none.",
        _ => "The server keeps as many as it may.",
    };
    let fail = |operation: Operation, &status: &u16| {
        operation.answers_as(status, what(status), &contents, &[])
    };
    statuses.iter().fold(operation, fail)
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

fn key(longest: usize) -> Value {
    let mut parameter = name("key", longest);
    // Spaces alone are no key.
    // A name of spaces alone is none. Unicode has one more than ECMAScript (262, 22.2.2.9).
    parameter["schema"]["pattern"] = "[^\\s\\u0085]".into();
    parameter
}

/// One that may be left empty.
fn query(name: &str, description: &str, schema: &Value) -> Value {
    let schema = json!({"anyOf": [schema, {"type": "string", "pattern": "^ *$"}]});
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn text() -> Value {
    json!({"type": "string"})
}

const TEXT: &str = "text/plain";
