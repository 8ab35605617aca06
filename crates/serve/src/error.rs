use std::fmt;
use std::io;
use std::net::SocketAddr;

use tollgate::config::OpenError;

/// A server that can't be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The address can't be listened on.
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// Others than this machine would reach the address, and wouldn't have to show a token.
    Unprotected {
        /// The address.
        addr: SocketAddr,
    },
    /// The configuration was loaded without the section `serve`. Use [`parse`](super::parse), or add
    /// [`sections`](super::sections) to the load options.
    MissingSection,
    /// Its limiter can't be made.
    Open(OpenError),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { addr, error } => write!(f, "can't listen on {addr}: {error}"),
            Self::Unprotected { addr } => write!(
                f,
                "{addr} can be reached from other machines: set TOLLGATE_TOKEN for clients to show, or \
                 let anybody ask with --allow-anonymous (serve.allow_anonymous)"
            ),
            Self::MissingSection => f.write_str(
                "the configuration was loaded without the section `serve`; use tollgate_serve::parse, or add \
                 tollgate_serve::sections() to the load options",
            ),
            Self::Open(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { error, .. } => Some(error),
            Self::Unprotected { .. } | Self::MissingSection => None,
            Self::Open(error) => Some(error),
        }
    }
}

impl From<OpenError> for ServeError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}
