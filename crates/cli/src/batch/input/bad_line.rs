use std::fmt;

/// A line of the input that is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadLine {
    /// Its number, from 1.
    pub number: u64,
    /// Its `custom_id` where that could be read and is its own, else `line-N`.
    pub custom_id: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is longer than the bound, in bytes.
    TooLong {
        /// The bound.
        longest: usize,
    },
    /// It is not text.
    NotUtf8 {
        /// The column of the first byte that isn't, from 1.
        column: usize,
    },
    /// It is not JSON, or a key stands twice.
    NotJson {
        /// What the parser says.
        message: String,
        /// Where it stopped, in bytes from 1.
        column: usize,
    },
    /// It is JSON, but no object.
    NotAnObject,
    /// It is a Batch line without a body.
    NoBody,
    /// Its body is no object.
    BodyNotAnObject {
        /// The member of the line that holds the body: `body`, `params` or `request`.
        member: &'static str,
    },
    /// Its id is not a string, or an empty one.
    CustomId {
        /// The member of the line that holds the id: `custom_id` or `key`.
        member: &'static str,
    },
    /// It is a batch line of another provider than the one that it would be sent to.
    OtherProvider {
        /// The provider whose batch lines look like it.
        provider: &'static str,
        /// The path that it would be sent to.
        endpoint: String,
    },
    /// The path it goes to has the model in it, and its body names none.
    NoModel {
        /// The path, with `{model}` in it.
        endpoint: String,
    },
    /// Its method is not `POST`.
    Method {
        /// The method, as JSON.
        method: String,
    },
    /// Its `url` is neither an absolute path nor an http(s) URL.
    Url {
        /// The `url`, as JSON, without a query.
        url: String,
    },
    /// Its `custom_id` stands in an earlier line.
    Repeats {
        /// The id.
        custom_id: String,
        /// The number of that line.
        first: u64,
    },
}

impl Fault {
    /// The code of the error line: `invalid_line` or `duplicate_custom_id`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Repeats { .. } => "duplicate_custom_id",
            _ => "invalid_line",
        }
    }

    /// Whether the same line is a request under other arguments: another provider, another path.
    pub fn depends_on_arguments(&self) -> bool {
        matches!(self, Self::OtherProvider { .. } | Self::NoModel { .. })
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.number, self.fault)
    }
}

impl std::error::Error for BadLine {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { longest } => write!(f, "longer than {longest} bytes"),
            Self::NotUtf8 { column } => write!(f, "invalid UTF-8 at column {column}"),
            Self::NotJson { message, column } => {
                write!(f, "not a JSON object: {message} at column {column}")
            }
            Self::NotAnObject => {
                f.write_str("not a JSON object; write a Batch line or a request body")
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
            Self::Repeats { custom_id, first } => {
                write!(f, "duplicate `custom_id` {custom_id:?} (first on line {first})")
            }
        }
    }
}
