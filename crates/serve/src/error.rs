use std::fmt;
use std::io;
use std::net::SocketAddr;

use paceline_config::OpenError;

/// An error that prevents the server from starting.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// Listening on the address failed.
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The cause.
        error: io::Error,
    },
    /// The address is reachable from other machines, and no client token is set.
    Unprotected {
        /// The address.
        addr: SocketAddr,
    },
    /// An environment variable isn't UTF-8.
    InvalidVariable {
        /// Its name.
        variable: &'static str,
    },
    /// The configuration was loaded without the section `serve`. Use [`parse`](super::parse), or add
    /// [`sections`](super::sections) to the load options.
    MissingSection,
    /// Building the limiter failed.
    Open(OpenError),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { addr, error } => write!(
                f,
                "{addr}: cannot listen: {error}; choose another address with --listen or --port \
                 (serve.listen)"
            ),
            Self::Unprotected { addr } => write!(
                f,
                "{addr} is reachable from other machines: set PACELINE_TOKEN to require a token from \
                 clients, or allow anonymous access with --allow-anonymous (serve.allow_anonymous)"
            ),
            Self::InvalidVariable { variable } => {
                write!(f, "{variable}: not valid UTF-8; set it to a text, or unset it")
            }
            Self::MissingSection => f.write_str(
                "the configuration was loaded without the section `serve`; use paceline_serve::parse, or add \
                 paceline_serve::sections() to the load options",
            ),
            Self::Open(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { error, .. } => Some(error),
            Self::Unprotected { .. } | Self::InvalidVariable { .. } | Self::MissingSection => None,
            Self::Open(error) => Some(error),
        }
    }
}

impl From<OpenError> for ServeError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}
