use std::borrow::Cow;

use redis::{ErrorKind, RedisError};

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The connection is gone: to be sent again over another.
    Broken,
    /// It answers, but doesn't do it now: read-only, out of memory, loading.
    Refused(Cow<'static, str>),
    /// No answer in time.
    Late,
    /// The store is away: nothing was sent.
    Away,
    /// The question was given up meanwhile: nobody waits for its answer.
    GivenUp,
}

impl Failure {
    /// An answer that nobody gives to such a call.
    pub(super) const UNREADABLE: Self = Self::Refused(Cow::Borrowed(UNREADABLE));

    /// In a word, for the log; never all that the server said.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Broken => "connection lost",
            Self::Refused(code) => code,
            Self::Late => "timed out",
            Self::Away => "unavailable",
            Self::GivenUp => "cancelled",
        }
    }

    /// Whether it says nothing of the next call: of another key, perhaps.
    pub(super) fn is_of_this_call(&self) -> bool {
        matches!(self, Self::Refused(code) if OF_A_CALL.contains(&&**code))
    }

    /// Whether another connection may do better: to whoever stands behind the address by now.
    pub(super) fn ends_link(&self) -> bool {
        match self {
            Self::Broken | Self::Late => true,
            Self::Refused(code) => code == "READONLY" || code == "MASTERDOWN",
            Self::Away | Self::GivenUp => false,
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            _ if error.is_timeout() => Self::Late,
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => Self::Broken,
            _ => Self::Refused(code(&error).to_owned().into()),
        }
    }
}

/// Before Redis 7, a script's error hides the code of the command that it stands for.
fn code(error: &RedisError) -> &str {
    let code = error.code().unwrap_or_else(|| error.category());
    let detail = error.detail().unwrap_or_default();
    let hidden = STATES.iter().find(|state| OF_A_CALL.contains(&code) && detail.contains(**state));
    hidden.copied().unwrap_or(code)
}

/// Errors that say something of one call, and nothing of the next.
const OF_A_CALL: [&str; 5] = ["ERR", "TOLLGATE", "WRONGTYPE", "CROSSSLOT", UNREADABLE];
const UNREADABLE: &str = "invalid response";
/// Errors that say how the server is.
const STATES: [&str; 6] = ["READONLY", "MASTERDOWN", "OOM", "MISCONF", "NOREPLICAS", "CLUSTERDOWN"];
