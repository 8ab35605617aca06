use std::fmt;

use http::StatusCode;

use crate::provider::ApiError;

/// Why the tokens of a request can't be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotCount {
    /// The provider counts no requests of this kind.
    NoEndpoint {
        /// The profile's name.
        provider: &'static str,
    },
    /// The body is no JSON object.
    Unreadable,
    /// The URL is none.
    NoUrl,
    /// The prompt holds something that can't be put into the format of the endpoint.
    Unsupported {
        /// Its type, as the request calls it: `input_audio`.
        kind: String,
    },
}

impl fmt::Display for CannotCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEndpoint { provider } => {
                write!(f, "{provider} has no endpoint that counts the tokens of this request")
            }
            Self::Unreadable => f.write_str("the body of the request is no JSON object"),
            Self::NoUrl => f.write_str("the URL of the request can't be read"),
            Self::Unsupported { kind } => write!(f, "content of type {kind} can't be counted"),
        }
    }
}

impl std::error::Error for CannotCount {}

/// Why an answer tells no count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountTokensError {
    /// The provider refused to count.
    Refused {
        /// The status of its answer.
        status: StatusCode,
        /// What it says of why.
        error: ApiError,
    },
    /// The answer is longer than any count.
    TooLong {
        /// The bound, in bytes.
        most: usize,
    },
    /// The answer states no count.
    NoCount,
}

impl fmt::Display for CountTokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { status, error } => {
                write!(f, "the provider refused to count the tokens: HTTP {status}: {error}")
            }
            Self::TooLong { most } => {
                write!(f, "the answer to the count of tokens is longer than {most} bytes")
            }
            Self::NoCount => f.write_str("the answer states no count of tokens"),
        }
    }
}

impl std::error::Error for CountTokensError {}
