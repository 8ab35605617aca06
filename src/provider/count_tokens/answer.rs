use http::StatusCode;
use serde::Deserialize;

use super::CountTokensError;
use crate::provider::ApiError;

/// The answer to a question for the count, taken in pieces: at most [`LONGEST_ANSWER`] bytes of it,
/// or [`LONGEST_ERROR`] of an error, are held.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

impl Answer {
    /// One of this status, before its body.
    pub fn new(status: StatusCode) -> Self {
        Self { status, body: Vec::new() }
    }

    /// The next bytes of the body. Those of an error beyond its bound are dropped.
    ///
    /// # Errors
    /// [`CountTokensError::TooLong`]: no count is as long as that; the rest need not be read.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), CountTokensError> {
        let most = if self.status.is_success() { LONGEST_ANSWER } else { LONGEST_ERROR };
        let room = most - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room && self.status.is_success() {
            return Err(CountTokensError::TooLong { most });
        }
        Ok(())
    }

    /// Whether nothing more of the body is wanted.
    pub fn is_full(&self) -> bool {
        !self.status.is_success() && self.body.len() >= LONGEST_ERROR
    }

    /// The tokens of the prompt.
    ///
    /// # Errors
    /// [`CountTokensError`] where the provider refused, or its answer states no count.
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

/// As much of a count as is read, in bytes.
pub const LONGEST_ANSWER: usize = 1024 * 1024;

/// As much of an error as is read, in bytes.
pub const LONGEST_ERROR: usize = 8 * 1024;
