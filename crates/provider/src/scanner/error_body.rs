use super::fields::Fields;
use super::frame::Frame;
use super::lexer::Lexer;
use super::sink::Sink;
use crate::{ApiError, json_member};

impl ApiError {
    /// Reads an error body, keeping at most 1 KiB of its message. Returns `None` if it states neither
    /// code, type nor message.
    ///
    /// ```
    /// # use paceline_provider::ApiError;
    /// let body = br#"{"error": {"type": "tokens", "code": "rate_limit_exceeded",
    ///     "message": "Rate limit reached on tokens per min (TPM): Limit 10000, Used 8782"}}"#;
    /// let error = ApiError::read(body).expect("an error");
    /// assert_eq!(error.code(), Some("rate_limit_exceeded"));
    /// ```
    pub fn read(body: &[u8]) -> Option<Self> {
        let other =
            || OTHER_MESSAGES.iter().find_map(|name| json_member::values(body, name).next());
        let error = known(body).or_else(|| Self::new("", "", other()?))?;
        Some(error.naming(body))
    }
}

/// Returns the error in the body of a failed request, which may be truncated.
fn known(body: &[u8]) -> Option<ApiError> {
    const ERRORS: &Fields = &Fields::new(&[]);
    let mut frame = Frame::failed();
    Lexer::new(ERRORS).feed(body, &mut frame);
    frame.end();
    frame.take_error()
}

/// Members that hold a message in AWS's errors and in FastAPI's validation errors.
const OTHER_MESSAGES: &[&str] = &["Message", "msg"];
