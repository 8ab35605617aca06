use serde_json::{Value, json};

use super::operation::Operation;
use super::rate::errors;

pub(super) fn health() -> Value {
    let operation = Operation::new("operations", "healthz", "Check whether the server is running");
    operation.response(200, "Healthy.", &text(), &[]).into()
}

pub(super) fn ready() -> Value {
    Operation::new("operations", "readyz", "Check whether the server accepts requests")
        .response(
            200,
            "Ready. The text says whether the store of the shared limits is unreachable, and requests are \
             decided without it.",
            &text(),
            &[],
        )
        .problem(
            503,
            "The server is stopping, the store of its shared limits is unreachable and `on_failure` is \
             `closed`, or the file of its store is gone.",
        )
        .into()
}

pub(super) fn metrics() -> Value {
    let operation = Operation::new("operations", "metrics", "Get the metrics for Prometheus")
        .response(200, "The metrics in the text format of Prometheus.", &text(), &[]);
    errors(operation, &[401, 403, 503]).security("adminToken").into()
}

pub(super) fn document() -> Value {
    Operation::new("operations", "document", "Get this document")
        .json(200, "The OpenAPI 3.1 document.", json!({"type": "object"}))
        .into()
}

fn text() -> [(&'static str, Value); 1] {
    [("text/plain", json!({"type": "string"}))]
}
