use serde_json::Value;

use super::operation::{OUT_OF_CAPACITY, Operation};
use super::parameter::name;
use super::schemas::Schemas;
use crate::api::decide::{DecideRequest, DecisionResponse};
use crate::api::stats::{KeyStatsResponse, StatsResponse};

pub(super) fn decide(schemas: &mut Schemas) -> Value {
    let json = [("application/json", schemas.of::<DecisionResponse>())];
    Operation::new("statistics", "decide", "Check whether a request would be admitted")
        .description("Does not consume quota. Each key is checked separately.")
        .body(&schemas.of::<DecideRequest>(), true)
        .response(200, "The decision.", &json, &["RateLimit", "RateLimit-Policy"])
        .reads_json()
        .problem(503, OUT_OF_CAPACITY)
        .for_clients()
        .into()
}

pub(super) fn stats(schemas: &mut Schemas) -> Value {
    Operation::new("statistics", "stats", "List the usage of all keys")
        .description("Includes every key that has its own quota or was used recently.")
        .paged()
        .json(200, "A page of keys.", schemas.of::<StatsResponse>())
        .problem(400, "Invalid request.")
        .problem(503, OUT_OF_CAPACITY)
        .for_admins()
        .into()
}

pub(super) fn key_stats(schemas: &mut Schemas) -> Value {
    Operation::new("statistics", "statsOf", "Get the usage of a key")
        .description("Also succeeds for a key that was never used.")
        .parameter(name("key", schemas.max_key_length))
        .json(200, "The usage of the key.", schemas.of::<KeyStatsResponse>())
        .problem(400, "Invalid request.")
        .problem(422, "The key is too long.")
        .for_admins()
        .into()
}
