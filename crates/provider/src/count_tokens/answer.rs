use http::StatusCode;
use serde::Deserialize;

use super::CountTokensError;
use crate::ApiError;

/// The response to a count request, read in chunks. It holds at most [`LONGEST_ANSWER`] bytes of a
/// count, or [`LONGEST_ERROR`] bytes of an error.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

impl Answer {
    /// Returns a response of this status, without its body.
    pub fn new(status: StatusCode) -> Self {
        Self { status, body: Vec::new() }
    }

    /// Adds bytes of the body. Bytes of an error beyond [`LONGEST_ERROR`] are dropped.
    ///
    /// # Errors
    /// [`CountTokensError::TooLong`] if the body of a success exceeds [`LONGEST_ANSWER`]; the rest need
    /// not be read.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), CountTokensError> {
        let limit = if self.status.is_success() { LONGEST_ANSWER } else { LONGEST_ERROR };
        let free = limit - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(free)]);
        if bytes.len() > free && self.status.is_success() {
            return Err(CountTokensError::TooLong { limit });
        }
        Ok(())
    }

    /// Returns true if the rest of the body is not needed.
    pub fn is_full(&self) -> bool {
        !self.status.is_success() && self.body.len() >= LONGEST_ERROR
    }

    /// Returns the tokens of the prompt.
    ///
    /// # Errors
    /// [`CountTokensError`] if the provider refused, or the response states no count.
    pub fn finish(self) -> Result<u64, CountTokensError> {
        if !self.status.is_success() {
            let error = ApiError::read(&self.body).unwrap_or_default();
            return Err(CountTokensError::Refused { status: self.status, error });
        }
        let counted: Result<Counted, _> = serde_json::from_slice(&self.body);
        counted.map(|counted| counted.tokens).map_err(|_| CountTokensError::NoCount)
    }
}

#[derive(Deserialize)]
struct Counted {
    #[serde(rename = "totalTokens", alias = "input_tokens")]
    tokens: u64,
}

/// The maximum length of a successful response, in bytes.
pub const LONGEST_ANSWER: usize = 1024 * 1024;

/// The maximum number of bytes that are kept of an error.
pub const LONGEST_ERROR: usize = 8 * 1024;
