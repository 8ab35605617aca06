use std::{fmt, io};

/// Why a shared limit can't be set up. That its store can't be reached is no reason.
#[derive(Debug)]
#[non_exhaustive]
pub enum SharedError {
    /// The address is none of a Redis server. The address itself isn't told: it may hold a password.
    Url(&'static str),
    /// The account has no name.
    NoAccount,
    /// The system starts no thread.
    Thread(io::Error),
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(reason) => write!(f, "Redis URL: {reason}"),
            Self::NoAccount => {
                f.write_str("account: must not be empty; name the account that shares the limits")
            }
            Self::Thread(error) => {
                write!(f, "shared limits: failed to start their thread: {error}")
            }
        }
    }
}

impl std::error::Error for SharedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}
