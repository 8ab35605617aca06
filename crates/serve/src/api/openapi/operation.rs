use serde_json::{Map, Value, json};

/// One operation of the document, as it grows.
#[derive(Debug)]
pub(super) struct Operation(Map<String, Value>);

impl Operation {
    pub(super) fn new(tag: &str, id: &str, summary: &str) -> Self {
        let start = json!({"tags": [tag], "operationId": id, "summary": summary, "responses": {}});
        match start {
            Value::Object(map) => Self(map),
            _ => unreachable!("it is an object"),
        }
    }

    pub(super) fn about(self, description: &str) -> Self {
        self.with("description", description.into())
    }

    /// Takes this in its path, its query or its head.
    pub(super) fn takes(mut self, parameter: Value) -> Self {
        let all = self.0.entry("parameters").or_insert_with(|| json!([]));
        all.as_array_mut().expect("made above").push(parameter);
        self
    }

    /// Takes a body of JSON.
    pub(super) fn body(self, schema: impl Into<Value>, required: bool) -> Self {
        let content = json!({"application/json": {"schema": schema.into()}});
        self.with("requestBody", json!({"required": required, "content": content}))
    }

    /// Answers this.
    pub(super) fn answers(self, status: u16, what: &str, schema: impl Into<Value>) -> Self {
        self.answers_as(status, what, &[("application/json", schema.into())], &[])
    }

    /// Answers this, with these fields of the head.
    pub(super) fn answers_as(
        self,
        status: u16,
        what: &str,
        contents: &[(&str, Value)],
        headers: &[&str],
    ) -> Self {
        let mut response = json!({"description": what});
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
        self.answers_raw(status, response)
    }

    /// Answers a problem document.
    pub(super) fn fails(self, status: u16, what: &str) -> Self {
        let problem = json!({"$ref": "#/components/schemas/Problem"});
        let headers: &[&str] = match status {
            415 => &["Accept-Encoding"],
            429 => &["Retry-After", "RateLimit", "RateLimit-Policy"],
            503 => &["Retry-After"],
            _ => &[],
        };
        self.answers_as(status, what, &[("application/problem+json", problem)], headers)
    }

    /// Answers that a limit falls short, or the server takes no more: as headers alone, or to who
    /// accepts JSON as a problem document.
    pub(super) fn limited(self) -> Self {
        let headers = json!({
            "Retry-After": {"$ref": "#/components/headers/Retry-After"},
            "RateLimit": {"$ref": "#/components/headers/RateLimit"},
            "RateLimit-Policy": {"$ref": "#/components/headers/RateLimit-Policy"},
        });
        let what = "A limit falls short, others come first, or the queue is full.";
        self.answers_raw(429, json!({"description": what, "headers": headers})).answers_raw(
            503,
            json!({"description": "The server takes no more.", "headers": headers}),
        )
    }

    /// Whom it lets in.
    pub(super) fn secured(self, scheme: &str) -> Self {
        let requirement = json!([{scheme: []}, {"tollgateToken": []}]);
        self.with("security", requirement)
    }

    fn answers_raw(mut self, status: u16, response: Value) -> Self {
        let all = self.0.get_mut("responses").and_then(Value::as_object_mut);
        let all = all.expect("made at the start");
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
