use std::borrow::Cow;

use redis::{ErrorKind, RedisError};

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The connection is gone: to be sent again over another.
    ConnectionLost,
    /// It answers, but doesn't do it now: read-only, out of memory, loading.
    Rejected(Cow<'static, str>),
    /// No answer in time.
    TimedOut,
    /// The store is away: nothing was sent.
    Unavailable,
    /// The question was given up meanwhile: nobody waits for its answer.
    Cancelled,
}

impl Failure {
    /// An answer that nobody gives to such a call.
    pub(super) const UNREADABLE: Self = Self::Rejected(Cow::Borrowed(UNREADABLE));

    /// In a word, for the log; never all that the server said.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::ConnectionLost => "connection lost",
            Self::Rejected(code) => code,
            Self::TimedOut => "timed out",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it says nothing of the next call: of another key, perhaps.
    pub(super) fn is_call_specific(&self) -> bool {
        matches!(self, Self::Rejected(code) if CALL_ERRORS.contains(&&**code))
    }

    /// Whether another connection may do better: to whoever stands behind the address by now.
    pub(super) fn breaks_link(&self) -> bool {
        match self {
            Self::ConnectionLost | Self::TimedOut => true,
            Self::Rejected(code) => code == "READONLY" || code == "MASTERDOWN",
            Self::Unavailable | Self::Cancelled => false,
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

/// Before Redis 7, a script's error hides the code of the command that it stands for.
fn code(error: &RedisError) -> &str {
    let code = error.code().unwrap_or_else(|| error.category());
    let detail = error.detail().unwrap_or_default();
    let hidden = SERVER_STATE_ERRORS
        .iter()
        .find(|state| CALL_ERRORS.contains(&code) && detail.contains(**state));
    hidden.copied().unwrap_or(code)
}

/// Errors that say something of one call, and nothing of the next.
const CALL_ERRORS: [&str; 5] = ["ERR", "TOLLGATE", "WRONGTYPE", "CROSSSLOT", UNREADABLE];
const UNREADABLE: &str = "invalid response";
/// Errors that say how the server is.
const SERVER_STATE_ERRORS: [&str; 6] =
    ["READONLY", "MASTERDOWN", "OOM", "MISCONF", "NOREPLICAS", "CLUSTERDOWN"];
