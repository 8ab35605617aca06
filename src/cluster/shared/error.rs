use std::{fmt, io};

/// An error that prevents the setup of shared limits.
///
/// An unreachable store is not an error: [`OnFailure`](crate::cluster::OnFailure) applies until it can
/// be reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum SharedError {
    /// The URL is invalid, for this reason. The error omits the URL, which may contain a password.
    Url(&'static str),
    /// The account name is empty.
    NoAccount,
    /// The operating system could not start a thread.
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
