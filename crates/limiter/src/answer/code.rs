use std::fmt;

use crate::engine::Wait;
use crate::quota::{Dimension, Limit, Window};

/// The kind of a decision. New codes may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The request fits.
    Ok,
    /// The key is unknown: no quota covers it.
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
    /// The allowed number of requests is in flight.
    ConcurrencyExceeded,
    /// A limit of another dimension or window is used up.
    LimitExceeded,
    /// The cost is more than the limit can ever hold.
    ExceedsCapacity,
    /// The cost is more than what is left of a limit that never resets.
    TotalExceeded,
    /// The cost has a dimension that no limit of the key counts.
    MissingLimit,
    /// The price of the request isn't known, and the key limits spending: its model or its mode has no price, nothing
    /// bounds its output, or its path isn't known to be billed by tokens or to be free.
    UnknownPrice,
    /// The rate learned from the provider's answers is used up. It may be below the quota.
    LearnedLimit,
    /// The key cools down after its provider refused a request.
    CoolingDown,
    /// The provider has refused the account of the key: [`Refused::refusal`](crate::limiter::Refused::refusal) has its
    /// words.
    AccountRefused,
    /// Earlier requests wait for this key.
    OthersWaiting,
    /// The limiter holds the largest number of keys allowed.
    TooManyKeys,
    /// The backend that keeps the limits cannot be reached.
    Unavailable,
    /// The limiter is closed.
    Closed,
}

impl Code {
    /// Returns the code as spelled in events, HTTP and the command line, such as `tpm_exceeded`.
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
            Self::TotalExceeded => "total_exceeded",
            Self::MissingLimit => "missing_limit",
            Self::UnknownPrice => "unknown_price",
            Self::LearnedLimit => "learned_limit",
            Self::CoolingDown => "cooling_down",
            Self::AccountRefused => "account_refused",
            Self::OthersWaiting => "others_waiting",
            Self::TooManyKeys => "too_many_keys",
            Self::Unavailable => "unavailable",
            Self::Closed => "closed",
        }
    }

    /// Returns the reason in words, as a clause without a subject.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Ok => "the request fits",
            Self::UnknownModel => "unknown key",
            Self::Unlimited => "not limited",
            Self::RpmExceeded => "requests per minute exceeded",
            Self::RpdExceeded => "requests per day exceeded",
            Self::TpmExceeded => "tokens per minute exceeded",
            Self::TpdExceeded => "tokens per day exceeded",
            Self::ItpmExceeded => "input tokens per minute exceeded",
            Self::OtpmExceeded => "output tokens per minute exceeded",
            Self::ConcurrencyExceeded => "too many requests in flight",
            Self::LimitExceeded => "limit exceeded",
            Self::ExceedsCapacity => "the request is larger than the limit",
            Self::TotalExceeded => "a limit that never resets is used up",
            Self::MissingLimit => "no limit counts a dimension of the cost",
            Self::UnknownPrice => {
                "the price of the request is unknown, and spending is limited; add its model to the prices, state \
                 `max_tokens`, or state its amount of `usd`"
            }
            Self::LearnedLimit => "the rate learned from the provider's answers is used up",
            Self::CoolingDown => {
                "cooling down after the provider refused or failed requests, or stated that a window is used"
            }
            Self::AccountRefused => {
                "the provider refuses the account; it is tried again with one request at a time"
            }
            Self::OthersWaiting => "earlier requests are waiting",
            Self::TooManyKeys => "the limiter holds the largest number of keys allowed",
            Self::Unavailable => "the shared store is unavailable",
            Self::Closed => "the limiter is closed",
        }
    }

    /// Returns the code of a cost that can't be counted in this dimension.
    pub(crate) fn of_uncounted(dimension: Option<&Dimension>) -> Self {
        match dimension {
            Some(dimension) if dimension.is_usd() => Self::UnknownPrice,
            _ => Self::MissingLimit,
        }
    }

    /// Returns the code of a limit that is short until then. `can_fit` returns whether the cost fits the unused limit.
    pub(crate) fn of(limit: &Limit, wait: Wait, can_fit: impl FnOnce() -> bool) -> Self {
        match wait {
            Wait::Never if limit.window().is_endless() && can_fit() => return Self::TotalExceeded,
            Wait::Never => return Self::ExceedsCapacity,
            Wait::At(_) | Wait::Unknown => {}
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
