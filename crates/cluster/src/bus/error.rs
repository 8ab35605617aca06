use std::{fmt, io};

#[cfg(any(feature = "redis", feature = "nats"))]
use crate::TlsError;

/// An error that prevents the creation of a bus.
///
/// An unreachable server is not an error: the bus keeps trying to connect.
#[derive(Debug)]
#[non_exhaustive]
pub enum BusError {
    /// The URL is not supported. The error omits the URL, which may contain a password.
    Url {
        /// The supported URL schemes.
        expected: &'static str,
    },
    /// A file with certificates or a key can't be used.
    #[cfg(any(feature = "redis", feature = "nats"))]
    Tls(TlsError),
    /// The operating system could not start a thread.
    Thread(io::Error),
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { expected } => write!(f, "bus URL: not supported; expected {expected}"),
            #[cfg(any(feature = "redis", feature = "nats"))]
            Self::Tls(error) => write!(f, "bus: TLS: {error}"),
            Self::Thread(error) => write!(f, "bus: failed to start its thread: {error}"),
        }
    }
}

impl std::error::Error for BusError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url { .. } => None,
            #[cfg(any(feature = "redis", feature = "nats"))]
            Self::Tls(error) => Some(error),
            Self::Thread(error) => Some(error),
        }
    }
}
