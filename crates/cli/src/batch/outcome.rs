//! The outcome of a request: one line of the output, in OpenAI's Batch format.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::ids::Id;
use super::input::InvalidLine;
use super::request_hash::RequestHash;
use paceline::provider::RefusalKind;

/// The outcome of one input line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    custom_id: String,
    response: Option<BatchResponse>,
    error: Option<Failure>,
    line: Option<u64>,
    hash: Option<RequestHash>,
}

impl Outcome {
    /// Returns the outcome of a successful request.
    pub fn succeeded(custom_id: impl Into<String>, response: BatchResponse) -> Self {
        Self::new(custom_id.into(), Some(response), None)
    }

    /// Returns the outcome of a failed request; `response` is the last response, if any.
    pub fn failed(
        custom_id: impl Into<String>,
        response: Option<BatchResponse>,
        failure: Failure,
    ) -> Self {
        Self::new(custom_id.into(), response, Some(failure))
    }

    fn new(custom_id: String, response: Option<BatchResponse>, error: Option<Failure>) -> Self {
        Self { custom_id, response, error, line: None, hash: None }
    }

    /// Sets the hash of the request, which the next run compares with its line.
    #[must_use]
    pub fn with_hash(mut self, hash: RequestHash) -> Self {
        self.hash = Some(hash);
        self
    }

    /// Returns the `custom_id`.
    pub fn custom_id(&self) -> &str {
        &self.custom_id
    }

    /// Returns the failure, if any.
    pub fn failure(&self) -> Option<&Failure> {
        self.error.as_ref()
    }

    /// Appends the outcome to `buf` as one line, newline included:
    /// `{"id","custom_id","response":{"status_code","request_id","body"},"error","request_hash"}`.
    ///
    /// A JSON body is written as received, without the line breaks between its tokens; any other
    /// body (an event stream, HTML) is written as a string.
    pub fn append_to(&self, buf: &mut Vec<u8>) {
        let body = self.response.as_ref().map(|response| Text::of(&response.body));
        let response =
            self.response.as_ref().zip(body.as_ref()).map(|(response, body)| WireResponse {
                status_code: response.status,
                request_id: response.request_id.as_deref(),
                body: body.as_wire(),
            });
        let wire = Wire {
            id: format!("batch_req_{}", Id::of(&self.custom_id)),
            custom_id: &self.custom_id,
            response,
            error: self.error.as_ref(),
            line: self.line,
            request_hash: self.hash,
        };
        serde_json::to_writer(&mut *buf, &wire).expect("strings and numbers always serialize");
        buf.push(b'\n');
    }
}

impl From<InvalidLine> for Outcome {
    /// Converts to an error line with the input line number.
    fn from(bad: InvalidLine) -> Self {
        let failure = Failure::new(bad.reason.code(), bad.to_string());
        let failure = if bad.reason.depends_on_arguments() { failure.retryable() } else { failure };
        Self { line: Some(bad.number), ..Self::new(bad.custom_id, None, Some(failure)) }
    }
}

/// The response of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchResponse {
    status: u16,
    request_id: Option<String>,
    body: Bytes,
}

impl BatchResponse {
    /// Returns a response with a status and body.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, request_id: None, body: body.into() }
    }

    /// Sets the provider's request id (`x-request-id`).
    #[must_use]
    pub fn with_request_id(mut self, request_id: impl Into<String>) -> Self {
        self.request_id = Some(request_id.into());
        self
    }
}

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    code: Cow<'static, str>,
    message: String,
    retryable: bool,
    /// Why the provider refused the request; only in the report.
    #[serde(skip)]
    refused: Option<RefusalKind>,
}

impl Failure {
    /// Returns a permanent failure, which the next run keeps.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, refused: None }
    }

    /// Returns the failure for an HTTP error status; `message` should be the provider's.
    ///
    /// Permanent if the request itself is rejected (400, 403, 404, 413, 422 and the like).
    /// Retryable if the same request may succeed later: redirects (another base URL), 401 and 402
    /// (another key, more credit), 408, 409, 425, 429 and all from 500 on.
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        let retryable = matches!(status, 300..=399 | 401 | 402 | 408 | 409 | 425 | 429 | 500..);
        Self { retryable, ..Self::new(format!("http_{status}"), message) }
    }

    /// Makes the failure retryable: the next run sends the request again and replaces this line.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Sets the kind of the provider's refusal.
    #[must_use]
    pub fn refused(mut self, kind: RefusalKind) -> Self {
        self.refused = Some(kind);
        self
    }

    /// Returns the kind of the provider's refusal, if it is one.
    pub fn refusal(&self) -> Option<RefusalKind> {
        self.refused
    }

    /// Returns true if the next run sends the request again.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Returns the code, such as `invalid_line` or `http_400`.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The start of every line: the first key of [`Wire`] and the constant part of its value.
pub(super) const PREFIX: &[u8] = br#"{"id":"batch_req_"#;

#[derive(Serialize)]
struct Wire<'a> {
    id: String,
    custom_id: &'a str,
    response: Option<WireResponse<'a>>,
    error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_hash: Option<RequestHash>,
}

#[derive(Serialize)]
struct WireResponse<'a> {
    status_code: u16,
    request_id: Option<&'a str>,
    body: WireBody<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireBody<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

/// A body as text on one line.
struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    fn of(body: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let broken = text.contains(['\n', '\r']);
        if broken && serde_json::from_str::<&RawValue>(&text).is_ok() {
            // A string of valid JSON holds no raw line break: line breaks occur only between tokens.
            return Self(Cow::Owned(text.replace(['\n', '\r'], "")));
        }
        Self(text)
    }

    fn as_wire(&self) -> WireBody<'_> {
        match serde_json::from_str(&self.0) {
            Ok(json) => WireBody::Json(json),
            Err(_) => WireBody::Text(&self.0),
        }
    }
}
