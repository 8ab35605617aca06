use std::fmt;

use http::StatusCode;

use crate::ApiError;

/// The error of a request whose tokens the provider can't count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotCount {
    /// The provider has no endpoint for this kind of request.
    NoEndpoint {
        /// The profile's name.
        provider: &'static str,
    },
    /// The body is not a JSON object.
    Unreadable,
    /// The URL is invalid.
    InvalidUrl,
    /// The prompt has content that the format of the endpoint can't express.
    Unsupported {
        /// The type of the content, as in the request: `input_audio`.
        kind: String,
    },
}

impl fmt::Display for CannotCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEndpoint { provider } => {
                write!(f, "provider {provider}: no endpoint counts the tokens of this request")
            }
            Self::Unreadable => f.write_str("body: not a JSON object; send one"),
            Self::InvalidUrl => f.write_str("url: invalid; use the URL of the request to count"),
            Self::Unsupported { kind } => {
                write!(f, "content of type `{kind}`: the provider's endpoint can't count it")
            }
        }
    }
}

impl std::error::Error for CannotCount {}

/// The error of a response without a token count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountTokensError {
    /// The provider refused to count.
    Refused {
        /// The status of the response.
        status: StatusCode,
        /// The error in its body.
        error: ApiError,
    },
    /// The response is too long.
    TooLong {
        /// The bound, in bytes.
        limit: usize,
    },
    /// The response states no count.
    NoCount,
}

impl fmt::Display for CountTokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { status, error } => {
                write!(f, "the provider refused to count tokens: HTTP {status}: {error}")
            }
            Self::TooLong { limit } => {
                write!(f, "the response to a token count is longer than {limit} bytes")
            }
            Self::NoCount => f.write_str("the response states no token count"),
        }
    }
}

impl std::error::Error for CountTokensError {}
