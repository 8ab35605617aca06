use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::operation::Operation;
use crate::api::decide::{DecideFields, DecisionTold};
use crate::api::quotas::{QuotaTold, QuotasTold};
use crate::api::reservation::{EndedTold, OpenTold, RenewFields, SettleFields, Told};
use crate::api::reserve::ReserveFields;
use crate::api::reset::ResetFields;
use crate::api::stats::{KeyTold, StatsTold};
use tollgate::config::section::quota_schema;

/// The paths of the JSON API; `longest_key` in bytes.
pub(super) fn paths(generator: &mut SchemaGenerator, longest_key: usize) -> Map<String, Value> {
    let mut paths = Map::new();
    let mut path = |path: &str, operations: Value| paths.insert(path.to_owned(), operations);
    path("/v1/reserve", json!({"post": reserve(generator)}));
    path("/v1/reservations/{id}", json!({"get": reservation(generator)}));
    path("/v1/reservations/{id}/settle", json!({"post": settle(generator)}));
    path("/v1/reservations/{id}/release", json!({"post": release(generator)}));
    path("/v1/reservations/{id}/renew", json!({"post": renew(generator)}));
    path("/v1/decide", json!({"post": decide(generator)}));
    path("/v1/stats", json!({"get": stats(generator)}));
    path("/v1/stats/{key}", json!({"get": stats_of(generator, longest_key)}));
    path("/v1/quotas", json!({"get": quotas(generator)}));
    let quota = json!({
        "get": quota(generator, longest_key),
        "put": put_quota(generator, longest_key),
        "delete": delete_quota(longest_key),
    });
    path("/v1/quotas/{name}", quota);
    path("/v1/reset", json!({"post": reset(generator)}));
    path("/openapi.json", json!({"get": document()}));
    paths
}

fn reserve(generator: &mut SchemaGenerator) -> Value {
    let told = schema::<OpenTold>(generator);
    let json = [("application/json", told)];
    let headers = ["Location", "RateLimit", "RateLimit-Policy", "Idempotency-Replayed"];
    let operation = Operation::new("reservations", "reserve", "Take a reservation")
        .about(
            "At once, or in its turn (`wait_ms`): first come, first served on each key. It can be \
             settled, released and renewed at this instance of the server only.",
        )
        .body(schema::<ReserveFields>(generator), true)
        .answers_as(201, "It is granted.", &json, &headers)
        .fails(429, "A limit falls short, others come first, the queue is full, or it never fits.")
        .fails(503, "The server is stopping, or keeps as much as it may.");
    changes(operation.secured("token"), true)
}

fn reservation(generator: &mut SchemaGenerator) -> Value {
    Operation::new("reservations", "reservation", "What is known of a reservation")
        .takes(id())
        .answers(200, "It is open, or ended not long ago.", schema::<Told>(generator))
        .fails(404, "It ended long ago, never was, or is another instance's.")
        .fails(400, "The path can't be read.")
        .fails(401, "The token is missing or wrong.")
        .secured("token")
        .into()
}

fn settle(generator: &mut SchemaGenerator) -> Value {
    let operation =
        Operation::new("reservations", "settle", "End a reservation, charged what it took")
            .about(
                "Exactly once: a second time is told how it ended. It is charged as it is told, \
                 however far above what was reserved: who has the token is trusted with that. A key \
                 that was charged more than its limit is in debt, and lets nobody in until time or \
                 `POST /v1/reset` has taken that away.",
            )
            .body(schema::<SettleFields>(generator), true);
    ending(operation, schema::<EndedTold>(generator), true)
}

fn release(generator: &mut SchemaGenerator) -> Value {
    let operation = Operation::new("reservations", "release", "End a reservation, charged nothing")
        .about("For what was never done. Exactly once: a second time is told how it ended.");
    ending(operation, schema::<EndedTold>(generator), false)
}

fn renew(generator: &mut SchemaGenerator) -> Value {
    let operation = Operation::new("reservations", "renew", "Hold a reservation for longer")
        .body(schema::<RenewFields>(generator), false);
    ending(operation, schema::<OpenTold>(generator), true)
}

/// What is done to a reservation.
fn ending(operation: Operation, told: Value, has_body: bool) -> Value {
    let json = [("application/json", told)];
    let operation = operation
        .takes(id())
        .answers_as(200, "It is done.", &json, &["Idempotency-Replayed"])
        .fails(404, "It ended long ago, never was, or is another instance's.")
        .fails(409, "It was settled or released; or the same request is still on its way.")
        .fails(410, "It has expired, or ended with the server.")
        .fails(503, "The server keeps as much as it may.");
    changes(operation.secured("token"), has_body)
}

fn decide(generator: &mut SchemaGenerator) -> Value {
    let json = [("application/json", schema::<DecisionTold>(generator))];
    let operation = Operation::new("figures", "decide", "Whether a request would be let in")
        .about("Takes nothing. Each key is looked at by itself.")
        .body(schema::<DecideFields>(generator), true)
        .answers_as(200, "The answer.", &json, &["RateLimit", "RateLimit-Policy"]);
    reads_body(operation).fails(401, "The token is missing or wrong.").secured("token").into()
}

fn stats(generator: &mut SchemaGenerator) -> Value {
    let operation = Operation::new("figures", "stats", "Figures of all keys, by key")
        .about("Of every key that has a quota of its own or was used of late.")
        .answers(200, "A page.", schema::<StatsTold>(generator));
    looks(page(operation))
}

fn stats_of(generator: &mut SchemaGenerator, longest_key: usize) -> Value {
    let operation = Operation::new("figures", "statsOf", "Figures of one key, used or not")
        .takes(name("key", longest_key))
        .answers(200, "Its figures.", schema::<KeyTold>(generator))
        .fails(422, "The key is too long.");
    looks(operation)
}

fn quotas(generator: &mut SchemaGenerator) -> Value {
    let operation = Operation::new("quotas", "quotas", "All quotas, by name")
        .about("Those that were configured, set and learned; not those that providers bring along.")
        .answers(200, "A page.", schema::<QuotasTold>(generator));
    looks(page(operation))
}

fn quota(generator: &mut SchemaGenerator, longest_key: usize) -> Value {
    let operation = Operation::new("quotas", "quota", "The quota of this very name")
        .takes(name("name", longest_key))
        .answers(200, "It.", schema::<QuotaTold>(generator))
        .fails(404, "There is none.");
    looks(operation)
}

fn put_quota(generator: &mut SchemaGenerator, longest_key: usize) -> Value {
    let told = schema::<QuotaTold>(generator);
    let json = [("application/json", told)];
    let operation = Operation::new("quotas", "putQuota", "Set a quota")
        .about(
            "The name is a key, a glob (`tenant:*`), or `regex:` and a regular expression. In use at \
             once: what was used stays used, and who waits is looked at again.",
        )
        .takes(name("name", longest_key))
        .body(quota_schema(generator), true)
        .answers_as(200, "It takes the place of another.", &json, &["Idempotency-Replayed"])
        .answers_as(201, "It is new.", &json, &["Idempotency-Replayed"])
        .fails(503, "The server keeps as many as it may.");
    changes(admin(operation), true)
}

fn delete_quota(longest_key: usize) -> Value {
    let operation = Operation::new("quotas", "deleteQuota", "Take a quota away")
        .about("Keys that no other quota names are unknown from then on.")
        .takes(name("name", longest_key))
        .answers_as(204, "It is gone.", &[], &["Idempotency-Replayed"])
        .fails(404, "There is none.")
        .fails(503, "The server keeps as much as it may.");
    changes(admin(operation), false)
}

fn reset(generator: &mut SchemaGenerator) -> Value {
    let operation = Operation::new("quotas", "reset", "Forget what a key has used, or all")
        .about("And that its provider refused it. What is in flight stays held.")
        .body(schema::<ResetFields>(generator), true)
        .answers_as(204, "It is forgotten.", &[], &["Idempotency-Replayed"])
        .fails(503, "The server keeps as much as it may.");
    changes(admin(operation), true)
}

fn document() -> Value {
    Operation::new("operation", "document", "This document")
        .answers(200, "OpenAPI 3.1.", json!({"type": "object"}))
        .into()
}

/// What every operation does that changes something.
fn changes(operation: Operation, has_body: bool) -> Value {
    let operation = operation.takes(json!({"$ref": "#/components/parameters/IdempotencyKey"}));
    let operation = match has_body {
        true => reads_body(operation),
        false => operation
            .fails(400, "The request can't be read.")
            .fails(415, "The body is in an encoding that isn't known.")
            .fails(422, "The idempotency key was sent with another request."),
    };
    let operation = operation
        .fails(401, "The token is missing or wrong.")
        .fails(409, "Another request changed it first, or the same is still on its way.")
        .fails(413, "The body is too long.");
    operation.into()
}

fn reads_body(operation: Operation) -> Operation {
    operation
        .fails(400, "The request can't be read: no JSON, a field that nobody knows, a wrong type.")
        .fails(413, "The body is too long, decompressed or as it came.")
        .fails(415, "The body isn't said to be JSON, or is in an encoding that isn't known.")
        .fails(422, "The request can't be meant, or its idempotency key was sent with another.")
}

fn looks(operation: Operation) -> Value {
    admin(operation)
        .fails(400, "The request can't be read.")
        .fails(401, "The token is missing or wrong.")
        .into()
}

fn admin(operation: Operation) -> Operation {
    operation.fails(403, "This is for admins.").secured("adminToken")
}

fn page(operation: Operation) -> Operation {
    operation
        .takes(json!({
            "name": "limit",
            "in": "query",
            "description": "How many entries at most. Default: 100.",
            "schema": {"type": "integer", "minimum": 1, "maximum": 1_000},
        }))
        .takes(json!({
            "name": "after",
            "in": "query",
            "description": "Only those behind this one: `next` of the page before.",
            "schema": {"type": "string"},
        }))
}

fn id() -> Value {
    json!({
        "name": "id",
        "in": "path",
        "required": true,
        "description": "The reservation.",
        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    })
}

/// A part of a path that names something; its longest in bytes.
pub(super) fn name(name: &str, longest: usize) -> Value {
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": format!("At most {longest} bytes in UTF-8, percent-encoded; `/` as %2F."),
        "schema": {"type": "string", "minLength": 1, "maxLength": longest},
    })
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}
