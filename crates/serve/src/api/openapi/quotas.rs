use paceline_config::section::quota_schema;
use serde_json::Value;

use super::operation::{OUT_OF_CAPACITY, Operation};
use super::parameter::name;
use super::schemas::Schemas;
use crate::api::quotas::{QuotaResponse, QuotasResponse};
use crate::api::reset::ResetRequest;

pub(super) fn list(schemas: &mut Schemas) -> Value {
    Operation::new("quotas", "quotas", "List all quotas")
        .description(
            "Includes configured, set and learned quotas, sorted by name, but not the default quotas of \
             providers.",
        )
        .paged()
        .json(200, "A page of quotas.", schemas.of::<QuotasResponse>())
        .problem(400, "Invalid request.")
        .problem(503, OUT_OF_CAPACITY)
        .for_admins()
        .into()
}

pub(super) fn get(schemas: &mut Schemas) -> Value {
    Operation::new("quotas", "quota", "Get the quota with exactly this name")
        .parameter(name("name", schemas.max_key_length))
        .json(200, "The quota.", schemas.of::<QuotaResponse>())
        .problem(400, "Invalid request.")
        .problem(404, NOT_FOUND)
        .for_admins()
        .into()
}

pub(super) fn put(schemas: &mut Schemas) -> Value {
    let json = [("application/json", schemas.of::<QuotaResponse>())];
    Operation::new("quotas", "putQuota", "Set a quota")
        .description(
            "The name is a key, a glob (`tenant:*`), or `regex:` followed by a regular expression. The \
             quota takes effect immediately: usage is kept, and waiting requests are re-evaluated.",
        )
        .parameter(name("name", schemas.max_key_length))
        .body(&quota_schema(&mut schemas.generator).to_value(), true)
        .response(200, "The quota was replaced.", &json, &["Idempotency-Replayed"])
        .response(201, "The quota was created.", &json, &["Idempotency-Replayed"])
        .idempotent(true)
        .for_admins()
        .into()
}

pub(super) fn delete(schemas: &mut Schemas) -> Value {
    Operation::new("quotas", "deleteQuota", "Delete a quota")
        .description("Keys without another quota are handled as unknown keys from then on.")
        .parameter(name("name", schemas.max_key_length))
        .response(204, "The quota was deleted.", &[], &["Idempotency-Replayed"])
        .problem(404, NOT_FOUND)
        .idempotent(false)
        .for_admins()
        .into()
}

pub(super) fn reset(schemas: &mut Schemas) -> Value {
    Operation::new("quotas", "reset", "Reset the usage of a key, or of all keys")
        .description("Also ends cool-downs. Quota held by requests in flight stays held.")
        .body(&schemas.of::<ResetRequest>(), true)
        .response(204, "The usage was reset.", &[], &["Idempotency-Replayed"])
        .response(
            202,
            "The store of the shared limits has not confirmed the reset yet.",
            &[],
            &["Idempotency-Replayed"],
        )
        .idempotent(true)
        .for_admins()
        .into()
}

const NOT_FOUND: &str = "No quota has exactly this name.";
