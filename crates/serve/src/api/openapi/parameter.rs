use serde_json::{Value, json};

/// Returns a path parameter with a name of at most `max_length` bytes.
pub(super) fn name(name: &str, max_length: usize) -> Value {
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": format!("At most {max_length} bytes in UTF-8, percent-encoded; `/` as %2F."),
        "schema": {"type": "string", "minLength": 1, "maxLength": max_length},
    })
}

/// Returns the path parameter of a reservation.
pub(super) fn reservation_id() -> Value {
    json!({
        "name": "id",
        "in": "path",
        "required": true,
        "description": "The id of the reservation.",
        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    })
}

/// Returns an optional query parameter, which may be empty.
pub(super) fn query(name: &str, description: &str, schema: &Value) -> Value {
    let schema = json!({"anyOf": [schema, {"type": "string", "pattern": "^ *$"}]});
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

/// Returns the query parameters of a paged list.
pub(super) fn page() -> [Value; 2] {
    let limit = json!({
        "name": "limit",
        "in": "query",
        "description": "The maximum number of entries. Default: 100.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1_000},
    });
    let after = json!({
        "name": "after",
        "in": "query",
        "description": "Returns only entries after this one: `next` of the previous page.",
        "schema": {"type": "string"},
    });
    [limit, after]
}
