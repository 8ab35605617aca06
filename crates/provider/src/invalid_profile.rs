use std::error::Error;
use std::fmt;

/// The error of a profile that can't be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidProfile {
    /// The name has characters that can't be part of paths, files and metric labels.
    Name {
        /// The given name.
        name: String,
    },
    /// A built-in profile has this name.
    BuiltIn {
        /// The name.
        name: &'static str,
    },
    /// No request can be sent to the base URL.
    BaseUrl {
        /// The given URL, without user name, password, query and fragment.
        base_url: String,
        /// The reason.
        reason: &'static str,
    },
    /// A rule can't be applied.
    Rule {
        /// The method of [`Rules`](crate::Rules) that sets it: `usage`, `api`.
        rule: &'static str,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for InvalidProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => write!(
                f,
                "provider name `{}`: use 1 to 64 letters, digits, `-`, `_` and `.`",
                name.escape_debug(),
            ),
            Self::BuiltIn { name } => {
                write!(f, "provider name `{name}`: a built-in provider has it; use another name")
            }
            Self::BaseUrl { base_url, reason } => write!(
                f,
                "base URL `{}` {reason}; write it like http://gpu-7:8000/v1",
                base_url.escape_debug(),
            ),
            Self::Rule { rule, reason } => write!(f, "{rule}: {reason}"),
        }
    }
}

impl Error for InvalidProfile {}
