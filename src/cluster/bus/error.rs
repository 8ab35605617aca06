use std::{fmt, io};

/// Why a bus can't be made. That its server can't be reached is no reason: it goes on trying.
#[derive(Debug)]
#[non_exhaustive]
pub enum BusError {
    /// This isn't a URL of such a server. Without the URL, which may hold a password.
    Url {
        /// Which would be one.
        expected: &'static str,
    },
    /// The system gives no thread for it.
    Thread(io::Error),
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { expected } => write!(f, "bus URL: not supported; expected {expected}"),
            Self::Thread(error) => write!(f, "bus: failed to start its thread: {error}"),
        }
    }
}

impl std::error::Error for BusError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url { .. } => None,
            Self::Thread(error) => Some(error),
        }
    }
}
