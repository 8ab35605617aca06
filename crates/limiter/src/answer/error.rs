use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::code::Code;
use super::learned::LearnedLimit;
use super::stats::LimitLevels;
use crate::engine::Wait;
use crate::plan::MissingFeature;
use crate::quota::{Dimension, Key, UnknownZone};
use crate::refusal::{Refusal, RefusalKind};
use crate::timestamp::Timestamp;

/// The refusal of a request that doesn't fit now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The key that refuses.
    pub key: Key,
    /// The reason.
    pub code: Code,
    /// The dimension that is short, if a limit refuses.
    pub dimension: Option<Dimension>,
    /// The time at which the request fits.
    pub wait: Wait,
    /// The amount needed of that dimension, and its limit.
    pub need: Option<Need>,
    /// The time of the refusal.
    pub asked_at: Timestamp,
    /// The details that few refusals have.
    pub(crate) details: Option<Box<RefusalDetails>>,
}

/// The details of a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RefusalDetails {
    /// The levels of the request's keys at the time of the refusal, one for each in its order, if
    /// requested.
    pub(crate) levels: Option<SmallVec<[LimitLevels; 1]>>,
    /// The learned limit that refuses.
    pub(crate) learned: Option<LearnedLimit>,
    /// The provider's refusal of the account.
    pub(crate) refusal: Option<Arc<Refusal>>,
    /// The kind of the refusal after which the key cools down.
    pub(crate) cooling_kind: Option<RefusalKind>,
}

/// The amount that a request needs, and the limit that it is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The amount that the request needs.
    pub amount: u64,
    /// The capacity of the limit; for a request that can never fit, the largest amount that fits.
    pub limit: u64,
}

impl Refused {
    /// Creates a refusal without a dimension.
    pub(crate) fn new(key: &Key, code: Code, wait: Wait, asked_at: Timestamp) -> Self {
        let key = key.clone();
        Self { key, code, dimension: None, wait, need: None, asked_at, details: None }
    }

    /// Creates the refusal of a cost in a dimension that no limit counts, or of an unknown price.
    #[cold]
    pub(crate) fn missing_limit(key: &Key, dimension: Dimension, asked_at: Timestamp) -> Self {
        let code = Code::of_uncounted(Some(&dimension));
        let refused = Self::new(key, code, Wait::Never, asked_at);
        Self { dimension: Some(dimension), ..refused }
    }

    /// Returns the levels of the request's keys at the time of the refusal, one for each in its order, if
    /// they were requested.
    pub(crate) fn levels(&self) -> Option<&[LimitLevels]> {
        self.details.as_ref()?.levels.as_deref()
    }

    /// Returns the measured limit that refuses, for [`Code::LearnedLimit`] with a dimension.
    pub fn learned(&self) -> Option<&LearnedLimit> {
        self.details.as_ref()?.learned.as_ref()
    }

    /// Returns the provider's refusal of the account, for [`Code::AccountRefused`].
    pub fn refusal(&self) -> Option<&Refusal> {
        self.details.as_ref()?.refusal.as_deref()
    }

    /// Sets the provider's refusal of the account.
    pub(crate) fn with_refusal(mut self, refusal: Option<Arc<Refusal>>) -> Self {
        if refusal.is_some() {
            self.details.get_or_insert_default().refusal = refusal;
        }
        self
    }

    /// Returns the kind of the provider's refusal after which the key cools down, if it is known, for
    /// [`Code::CoolingDown`].
    pub fn cooling_kind(&self) -> Option<RefusalKind> {
        self.details.as_ref()?.cooling_kind
    }

    /// Sets the kind of the refusal after which the key cools down.
    pub(crate) fn with_cooling_kind(mut self, kind: Option<RefusalKind>) -> Self {
        if kind.is_some() {
            self.details.get_or_insert_default().cooling_kind = kind;
        }
        self
    }

    /// Sets the learned limit that refuses.
    pub(crate) fn with_learned(mut self, learned: Option<LearnedLimit>) -> Self {
        if learned.is_some() {
            self.details.get_or_insert_default().learned = learned;
        }
        self
    }

    /// Returns the time from the refusal until the request fits, if no other request comes first. `None`
    /// if that depends on requests in flight, or the request can never fit.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.wait {
            Wait::At(time) => Some(time - self.asked_at),
            Wait::Unknown | Wait::Never => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, code, wait, .. } = self;
        write!(f, "{key}: ")?;
        match (code, &self.dimension, self.need) {
            (Code::MissingLimit, Some(dimension), _) => {
                write!(f, "no limit counts {dimension}; {MISSING_LIMIT_ADVICE}")?;
            }
            (Code::TotalExceeded, Some(dimension), Some(Need { amount, limit })) => write!(
                f,
                "the request needs {}, and less is left of the total of {}; \
                 reset the key or raise the limit",
                dimension.quantity(amount),
                dimension.amount(limit)
            )?,
            (_, Some(dimension), Some(Need { amount, limit })) if *wait == Wait::Never => write!(
                f,
                "the request needs {}, the limit allows at most {}; \
                 make the request smaller or raise the limit",
                dimension.quantity(amount),
                dimension.amount(limit)
            )?,
            (Code::LimitExceeded, Some(dimension), Some(Need { amount, limit })) => {
                let (amount, limit) = (dimension.amount(amount), dimension.amount(limit));
                write!(f, "{dimension} limit exceeded (needs {amount}, limit {limit})")?;
            }
            (_, _, Some(Need { amount, limit })) => {
                write!(f, "{} (needs {amount}, limit {limit})", code.reason())?;
            }
            _ => match self.cooling_kind() {
                Some(kind) => {
                    write!(f, "cooling down after the provider's refusal: {}", kind.describe())?;
                }
                None => f.write_str(code.reason())?,
            },
        }
        if let Some(learned) = self.learned() {
            write!(f, ": {learned}")?;
        }
        if let Some(refusal) = self.refusal() {
            write!(f, ": {}", refusal.text)?;
        }
        match self.retry_after() {
            Some(after) => write!(f, "; retry in {:.3} s", after.as_secs_f64()),
            None if *wait == Wait::Never => Ok(()),
            None => f.write_str(match code {
                Code::OthersWaiting | Code::TooManyKeys | Code::Unavailable => "; retry later",
                _ => "; retry when a request in flight ends",
            }),
        }
    }
}

impl std::error::Error for Refused {}

/// The error of a request that waited for a reservation, or would have had to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// The request can never be granted: the key is unknown and unknown keys are refused, the cost is
    /// more than a limit can ever hold, or no limit counts one of its dimensions.
    Refused(Refused),
    /// The request cannot be granted by its deadline. Returned as soon as that is known.
    DeadlineExceeded {
        /// The deadline.
        deadline: Timestamp,
        /// The reason why the request didn't fit, and the time at which it does.
        refused: Refused,
    },
    /// The key's queue is full.
    QueueFull {
        /// The key of the queue.
        key: Key,
        /// The number of requests in it.
        waiting: usize,
    },
    /// The quota of the key was removed while the request waited, and no other quota covers the key.
    Removed {
        /// The key.
        key: Key,
    },
    /// The limiter was closed.
    Closed,
}

impl AcquireError {
    /// Returns the refusal, if the request failed for lack of quota.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) | Self::DeadlineExceeded { refused, .. } => Some(refused),
            Self::QueueFull { .. } | Self::Removed { .. } | Self::Closed => None,
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::DeadlineExceeded { refused, .. } => {
                write!(f, "the request cannot be granted by its deadline: {refused}")
            }
            Self::QueueFull { key, waiting } => {
                write!(f, "{key}: the wait queue is full with {waiting} requests; retry later")
            }
            Self::Removed { key } => write!(f, "{key}: the quota was removed during the wait"),
            Self::Closed => f.write_str("the limiter is closed"),
        }
    }
}

impl std::error::Error for AcquireError {}

/// The error of [`Builder::build`](crate::limiter::Builder::build), and of settings that change while a limiter
/// runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A quota was given for an empty key.
    EmptyKey,
    /// A number is out of range.
    OutOfRange {
        /// The name of the number.
        name: &'static str,
        /// The number.
        value: String,
        /// The allowed range, in words.
        range: &'static str,
    },
    /// A quota needs a Cargo feature that this program was built without.
    MissingFeature(MissingFeature),
    /// A default quota of a provider uses an unknown time zone.
    UnknownZone(UnknownZone),
    /// A quota of a limiter with a [`Backend`](crate::limiter::Backend) has a limit that never resets. A backend
    /// doesn't keep usage for ever: a server that comes back empty would grant the total again.
    TotalWithBackend {
        /// The key or the pattern of the quota.
        name: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyKey => f.write_str("quota: the key is empty; name a key or a glob"),
            Self::OutOfRange { name, value, range } => {
                write!(f, "{name}: {value} is out of range; set a value {range}")
            }
            Self::MissingFeature(error) => error.fmt(f),
            Self::UnknownZone(error) => write!(f, "a provider's default quota: {error}"),
            Self::TotalWithBackend { name } => write!(
                f,
                "{name}: a shared backend keeps no limit that never resets; limit the amount per month, or keep the \
                 total in the store of one machine"
            ),
        }
    }
}

impl From<MissingFeature> for BuildError {
    fn from(error: MissingFeature) -> Self {
        Self::MissingFeature(error)
    }
}

impl From<UnknownZone> for BuildError {
    fn from(error: UnknownZone) -> Self {
        Self::UnknownZone(error)
    }
}

impl std::error::Error for BuildError {}

const MISSING_LIMIT_ADVICE: &str =
    "add such a limit, or state the cost in dimensions that are limited";
