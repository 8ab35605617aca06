use serde_json::{Map, Value, json};

use super::parameter;

/// An operation of the document under construction.
#[derive(Debug)]
pub(super) struct Operation(Map<String, Value>);

impl Operation {
    pub(super) fn new(tag: &str, id: &str, summary: &str) -> Self {
        let start = json!({"tags": [tag], "operationId": id, "summary": summary, "responses": {}});
        match start {
            Value::Object(map) => Self(map),
            _ => unreachable!("the literal is an object"),
        }
    }

    pub(super) fn description(self, description: &str) -> Self {
        self.with("description", description.into())
    }

    /// Adds a parameter of the path, the query or the headers.
    pub(super) fn parameter(mut self, parameter: Value) -> Self {
        let all = self.0.entry("parameters").or_insert_with(|| json!([]));
        all.as_array_mut().expect("parameters are an array").push(parameter);
        self
    }

    /// Adds the parameters of a paged list.
    pub(super) fn paged(self) -> Self {
        parameter::page().into_iter().fold(self, Self::parameter)
    }

    /// Sets a JSON request body.
    pub(super) fn body(self, schema: &Value, required: bool) -> Self {
        let content = json!({"application/json": {"schema": schema}});
        self.with("requestBody", json!({"required": required, "content": content}))
    }

    /// Adds a JSON response.
    pub(super) fn json(self, status: u16, description: &str, schema: Value) -> Self {
        self.response(status, description, &[("application/json", schema)], &[])
    }

    /// Adds a response with schemas by content type, and with these headers. The first response of a
    /// status counts.
    pub(super) fn response(
        self,
        status: u16,
        description: &str,
        contents: &[(&str, Value)],
        headers: &[&str],
    ) -> Self {
        let mut response = json!({"description": description});
        if !contents.is_empty() {
            let content =
                |(kind, schema): &(&str, Value)| ((*kind).to_owned(), json!({"schema": schema}));
            response["content"] = Value::Object(contents.iter().map(content).collect());
        }
        if !headers.is_empty() {
            let header = |name: &&str| {
                let component = format!("#/components/headers/{name}");
                ((*name).to_owned(), json!({"$ref": component}))
            };
            response["headers"] = Value::Object(headers.iter().map(header).collect());
        }
        self.insert(status, response)
    }

    /// Adds a response with a problem document.
    pub(super) fn problem(self, status: u16, description: &str) -> Self {
        let problem = json!({"$ref": "#/components/schemas/Problem"});
        let headers: &[&str] = match status {
            415 => &["Accept-Encoding"],
            429 => &["Retry-After", "RateLimit", "RateLimit-Policy"],
            503 => &["Retry-After"],
            _ => &[],
        };
        self.response(status, description, &[("application/problem+json", problem)], headers)
    }

    /// Adds the responses of an operation that reads a JSON body.
    pub(super) fn reads_json(self) -> Self {
        self.problem(400, "Invalid request: malformed JSON, an unknown field, or a wrong type.")
            .problem(413, "The body is too large, compressed or decompressed.")
            .problem(415, "The content type is not JSON, or the content encoding is unsupported.")
            .problem(
                422,
                "A value is invalid, or the Idempotency-Key was used with another request.",
            )
    }

    /// Adds the parameter and the responses of an operation that supports `Idempotency-Key`.
    pub(super) fn idempotent(self, has_body: bool) -> Self {
        let operation = self.parameter(json!({"$ref": "#/components/parameters/IdempotencyKey"}));
        let operation = match has_body {
            true => operation.reads_json(),
            false => operation
                .problem(400, "Invalid request.")
                .problem(415, "The content encoding is unsupported.")
                .problem(422, "The Idempotency-Key was used with another request."),
        };
        operation
            .problem(409, "A request with the same Idempotency-Key is still in progress.")
            .problem(413, "The body is too large.")
            .problem(503, OUT_OF_CAPACITY)
    }

    /// Requires the token of clients.
    pub(super) fn for_clients(self) -> Self {
        self.problem(401, UNAUTHORIZED).security("token")
    }

    /// Requires the token of admins.
    pub(super) fn for_admins(self) -> Self {
        self.problem(401, UNAUTHORIZED)
            .problem(403, "The operation requires the admin token.")
            .security("adminToken")
    }

    /// Sets the security scheme.
    pub(super) fn security(self, scheme: &str) -> Self {
        self.with("security", json!([{scheme: []}, {"pacelineToken": []}]))
    }

    fn insert(mut self, status: u16, response: Value) -> Self {
        let all = self.0.get_mut("responses").and_then(Value::as_object_mut);
        let all = all.expect("responses are an object");
        all.entry(status.to_string()).or_insert(response);
        self
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }
}

impl From<Operation> for Value {
    fn from(operation: Operation) -> Self {
        Self::Object(operation.0)
    }
}

pub(super) const OUT_OF_CAPACITY: &str = "The server is out of capacity, or stopping.";

const UNAUTHORIZED: &str = "The token is missing or invalid.";
