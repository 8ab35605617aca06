use std::{fmt, io};

use crate::TlsError;

/// An error that prevents the setup of shared limits.
///
/// An unreachable store is not an error: [`OnFailure`](crate::OnFailure) applies until it can
/// be reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum SharedError {
    /// The URL is invalid, for this reason. The error omits the URL, which may contain a password.
    Url(&'static str),
    /// The account name is empty.
    NoAccount,
    /// A file with certificates or a key can't be used.
    Tls(TlsError),
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
            Self::Tls(error) => write!(f, "TLS: {error}"),
            Self::Thread(error) => {
                write!(f, "shared limits: failed to start their thread: {error}")
            }
        }
    }
}

impl std::error::Error for SharedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Tls(error) => Some(error),
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}
