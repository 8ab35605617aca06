use std::borrow::Cow;

use redis::{ErrorKind, RedisError};

use crate::cause::Cause;

/// The reason why a call to the store has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The connection was lost; the call can be repeated over a new one.
    ConnectionLost,
    /// No connection could be opened, for this cause.
    NotConnected(Cause),
    /// The server replied with an error, such as read-only, out of memory or loading. Contains the
    /// error code.
    Rejected(Cow<'static, str>),
    /// The store did not respond in time.
    TimedOut,
    /// The store is unavailable; the call was not sent.
    Unavailable,
    /// The call was cancelled, and its result is no longer needed.
    Cancelled,
}

impl Failure {
    /// The failure for a response that the script never produces.
    pub(super) const UNREADABLE: Self = Self::Rejected(Cow::Borrowed(UNREADABLE));

    /// Returns the cause, which never contains the server's full message.
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::ConnectionLost => Cause::of_text("connection lost"),
            Self::NotConnected(cause) => cause.clone(),
            Self::Rejected(code) => Cause::of_code(code),
            Self::TimedOut => Cause::of_text("timed out"),
            Self::Unavailable => Cause::of_text("unavailable"),
            Self::Cancelled => Cause::of_text("cancelled"),
        }
    }

    /// Returns whether the failure concerns this call alone, so that calls on other keys may
    /// succeed.
    pub(super) fn is_call_specific(&self) -> bool {
        matches!(self, Self::Rejected(code) if CALL_ERRORS.contains(&&**code))
    }

    /// Returns whether to replace the connection: another server may have taken over the address.
    pub(super) fn breaks_link(&self) -> bool {
        match self {
            Self::ConnectionLost | Self::TimedOut => true,
            Self::Rejected(code) => code == "READONLY" || code == "MASTERDOWN",
            Self::NotConnected(_) | Self::Unavailable | Self::Cancelled => false,
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            _ if error.is_timeout() => Self::TimedOut,
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => {
                Self::ConnectionLost
            }
            _ => Self::Rejected(code(&error).to_owned().into()),
        }
    }
}

/// Returns the error code. Before Redis 7, the error of a script hides the code of the command that
/// failed in it.
fn code(error: &RedisError) -> &str {
    let code = error.code().unwrap_or_else(|| error.category());
    let detail = error.detail().unwrap_or_default();
    let hidden = SERVER_STATE_ERRORS
        .iter()
        .find(|state| CALL_ERRORS.contains(&code) && detail.contains(**state));
    hidden.copied().unwrap_or(code)
}

/// Error codes that concern one call.
const CALL_ERRORS: [&str; 5] = ["ERR", "PACELINE", "WRONGTYPE", "CROSSSLOT", UNREADABLE];
const UNREADABLE: &str = "invalid response";
/// Error codes that concern the server.
const SERVER_STATE_ERRORS: [&str; 6] =
    ["READONLY", "MASTERDOWN", "OOM", "MISCONF", "NOREPLICAS", "CLUSTERDOWN"];
