use std::fmt;

/// An invalid line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidLine {
    /// The line number, from 1.
    pub number: u64,
    /// The `custom_id` if it is readable and unique, else `line-N`.
    pub custom_id: String,
    /// The error.
    pub reason: InvalidLineReason,
}

/// The error of an invalid line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidLineReason {
    /// The line is too long.
    TooLong {
        /// The maximum length in bytes.
        longest: usize,
    },
    /// The line is not valid UTF-8.
    NotUtf8 {
        /// The column of the first invalid byte, from 1.
        column: usize,
    },
    /// The line is not valid JSON, or has a duplicate key.
    NotJson {
        /// The message of the parser.
        message: String,
        /// The column of the error in bytes, from 1.
        column: usize,
    },
    /// The line is JSON, but not an object.
    NotAnObject,
    /// The line is a Batch line without a body.
    NoBody,
    /// The body is not an object.
    BodyNotAnObject {
        /// The member of the line that holds the body: `body`, `params` or `request`.
        member: &'static str,
    },
    /// The id is not a string, or is empty.
    CustomId {
        /// The member of the line that holds the id: `custom_id` or `key`.
        member: &'static str,
    },
    /// The line is a batch line of another provider.
    OtherProvider {
        /// The provider with this format of batch lines.
        provider: &'static str,
        /// The path of the request.
        endpoint: String,
    },
    /// The path contains the model, but the body has none.
    NoModel {
        /// The path, with `{model}`.
        endpoint: String,
    },
    /// The method is not `POST`.
    Method {
        /// The method, as JSON.
        method: String,
    },
    /// The `url` is neither an absolute path nor an http(s) URL.
    Url {
        /// The `url`, as JSON, without a query.
        url: String,
    },
    /// The `custom_id` occurs on an earlier line.
    DuplicateId {
        /// The id.
        custom_id: String,
        /// The number of the earlier line.
        first: u64,
    },
}

impl InvalidLineReason {
    /// Returns the error code: `invalid_line` or `duplicate_custom_id`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateId { .. } => "duplicate_custom_id",
            _ => "invalid_line",
        }
    }

    /// Returns true if the line may be valid with another provider or path.
    pub fn depends_on_arguments(&self) -> bool {
        matches!(self, Self::OtherProvider { .. } | Self::NoModel { .. })
    }
}

impl fmt::Display for InvalidLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.number, self.reason)
    }
}

impl std::error::Error for InvalidLine {}

impl fmt::Display for InvalidLineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { longest } => write!(f, "longer than {longest} bytes"),
            Self::NotUtf8 { column } => write!(f, "invalid UTF-8 at column {column}"),
            // Plain text fails at its first character.
            Self::NotAnObject | Self::NotJson { column: 1, .. } => {
                f.write_str("not a JSON object; write a Batch line or a request body")
            }
            Self::NotJson { message, column } => {
                write!(f, "not a JSON object: {message} at column {column}")
            }
            Self::NoBody => f.write_str("a Batch line without `body`; add one"),
            Self::BodyNotAnObject { member } => write!(f, "`{member}` must be a JSON object"),
            Self::CustomId { member } => {
                write!(f, "`{member}` must be a non-empty string")
            }
            Self::OtherProvider { provider, endpoint } => write!(
                f,
                "a batch line of {provider}, but requests go to {endpoint}; use --provider \
                 {provider}, or set the path with --endpoint"
            ),
            Self::NoModel { endpoint } => write!(
                f,
                "no `model` in the body, but {endpoint} needs one; add it, or set a path with the \
                 model's name with --endpoint"
            ),
            Self::Method { method } => write!(f, "`method` must be \"POST\", not {method}"),
            Self::Url { url } => {
                write!(f, "`url` must be an absolute path or an http(s) URL, not {url}")
            }
            Self::DuplicateId { custom_id, first } => {
                write!(f, "duplicate `custom_id` {custom_id:?} (first on line {first})")
            }
        }
    }
}
