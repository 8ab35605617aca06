use std::fmt;

use crate::engine::Wait;
use crate::quota::{Dimension, Limit, Window};

/// The kind of a decision. New codes may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// It fits.
    Ok,
    /// Nothing is known of this key.
    UnknownModel,
    /// The key has no limits.
    Unlimited,
    /// Requests per minute are used up.
    RpmExceeded,
    /// Requests per day are used up.
    RpdExceeded,
    /// Tokens per minute are used up.
    TpmExceeded,
    /// Tokens per day are used up.
    TpdExceeded,
    /// Input tokens per minute are used up.
    ItpmExceeded,
    /// Output tokens per minute are used up.
    OtpmExceeded,
    /// As many requests as allowed are in flight.
    ConcurrencyExceeded,
    /// A limit of another dimension or window is used up.
    LimitExceeded,
    /// More than the limit can ever hold.
    ExceedsCapacity,
    /// The cost names a dimension that no limit of the key counts.
    MissingLimit,
    /// The provider refused a request of this key a moment ago.
    CoolingDown,
    /// Others wait for this key, and their turn comes first.
    OthersWaiting,
    /// The limiter keeps as many keys as it may, and this one would be one more.
    TooManyKeys,
    /// The place where the limits are kept can't be asked.
    Unavailable,
    /// The limiter was closed.
    Closed,
}

impl Code {
    /// The code as events, HTTP and the command line spell it, such as `tpm_exceeded`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::UnknownModel => "unknown_model",
            Self::Unlimited => "unlimited",
            Self::RpmExceeded => "rpm_exceeded",
            Self::RpdExceeded => "rpd_exceeded",
            Self::TpmExceeded => "tpm_exceeded",
            Self::TpdExceeded => "tpd_exceeded",
            Self::ItpmExceeded => "itpm_exceeded",
            Self::OtpmExceeded => "otpm_exceeded",
            Self::ConcurrencyExceeded => "concurrency_exceeded",
            Self::LimitExceeded => "limit_exceeded",
            Self::ExceedsCapacity => "exceeds_capacity",
            Self::MissingLimit => "missing_limit",
            Self::CoolingDown => "cooling_down",
            Self::OthersWaiting => "others_waiting",
            Self::TooManyKeys => "too_many_keys",
            Self::Unavailable => "unavailable",
            Self::Closed => "closed",
        }
    }

    /// The code for a limit that falls short for so long.
    pub(crate) fn of(limit: &Limit, wait: Wait) -> Self {
        if wait == Wait::Never {
            return Self::ExceedsCapacity;
        }
        match (limit.dimension(), limit.window()) {
            (Dimension::Concurrency, _) => Self::ConcurrencyExceeded,
            (Dimension::Requests, Window::MINUTE) => Self::RpmExceeded,
            (Dimension::Requests, Window::DAY) => Self::RpdExceeded,
            (Dimension::Tokens, Window::MINUTE) => Self::TpmExceeded,
            (Dimension::Tokens, Window::DAY) => Self::TpdExceeded,
            (Dimension::InputTokens, Window::MINUTE) => Self::ItpmExceeded,
            (Dimension::OutputTokens, Window::MINUTE) => Self::OtpmExceeded,
            _ => Self::LimitExceeded,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
