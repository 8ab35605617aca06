use std::fmt;
use std::time::Duration;

use compact_str::CompactString;
use smallvec::SmallVec;

use super::code::Code;
use super::stats::Figures;
use crate::engine::Wait;
use crate::plan::MissingFeature;
use crate::quota::{Dimension, UnknownZone};
use crate::timestamp::Timestamp;

/// A reservation that was not granted now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Whose it would have been.
    pub key: CompactString,
    /// Why not.
    pub code: Code,
    /// The dimension that binds, if one does.
    pub dimension: Option<Dimension>,
    /// When it would be granted.
    pub wait: Wait,
    /// The amount needed of the dimension, and its limit.
    pub need: Option<(u64, u64)>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// The figures of the request's keys at that moment, one for each in its order, where it asked for
    /// them.
    pub(crate) figures: Option<Box<SmallVec<[Figures; 1]>>>,
}

impl Refused {
    /// The refusal of a cost in a dimension that no limit counts.
    #[cold]
    pub(crate) fn missing_limit(
        key: &CompactString,
        dimension: Dimension,
        asked_at: Timestamp,
    ) -> Self {
        let (key, code, wait) = (key.clone(), Code::MissingLimit, Wait::Never);
        let dimension = Some(dimension);
        Self { key, code, dimension, wait, need: None, asked_at, figures: None }
    }

    /// Returns the figures of the request's keys at the moment of the refusal, one for each in its
    /// order, where the request asked for them.
    #[cfg(feature = "axum")]
    pub(crate) fn figures(&self) -> Option<&[Figures]> {
        self.figures.as_ref().map(|figures| &figures[..])
    }

    /// How long after asking it would be granted, if nobody else comes; `None` if that hangs on a
    /// request in flight, or will never be.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.wait {
            Wait::At(time) => Some(time - self.asked_at),
            Wait::Unknown | Wait::Never => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, code, .. } = self;
        match (&self.dimension, self.need) {
            (Some(dimension), Some((need, limit))) if self.wait == Wait::Never => {
                write!(f, "request needs {need} {dimension}; the limit of {key} holds {limit}")?;
            }
            (Some(dimension), _) if *code == Code::MissingLimit => write!(
                f,
                "{key}: the request costs {dimension}, but no limit of the key counts {dimension}; \
                 state the cost in the dimensions that are limited, or add a limit"
            )?,
            _ => write!(f, "{key}: {code}")?,
        }
        match self.retry_after() {
            Some(after) => write!(f, "; fits in {:.3} s", after.as_secs_f64()),
            None if self.wait == Wait::Unknown => f.write_str("; fits when others end"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refused {}

/// A reservation that was waited for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// It can never be granted: the key is unknown and unknown keys are refused, the cost is above
    /// what a limit can ever hold, or no limit counts a dimension of it.
    Refused(Refused),
    /// It can't be granted by its deadline. Said as soon as that is known.
    DeadlineExceeded {
        /// The deadline.
        deadline: Timestamp,
        /// The refusal that it would have had to wait out.
        refused: Refused,
    },
    /// The key's queue is full.
    QueueFull {
        /// Whose queue.
        key: CompactString,
        /// The number of requests in it.
        waiting: usize,
    },
    /// The quota of the key was removed while the request waited for it, and no other names it.
    Removed {
        /// Whose quota.
        key: CompactString,
    },
    /// The limiter was closed.
    Closed,
}

impl AcquireError {
    /// Returns the refusal, where the request failed for want of quota.
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
                write!(f, "can't be granted by its deadline: {refused}")
            }
            Self::QueueFull { key, waiting } => {
                write!(f, "{key}: {waiting} requests wait already, which is the most allowed")
            }
            Self::Removed { key } => write!(f, "{key}: its quota was removed"),
            Self::Closed => f.write_str("the limiter is closed"),
        }
    }
}

impl std::error::Error for AcquireError {}

/// A cost in a dimension that limits given with the call don't have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingLimit {
    /// The dimension.
    pub dimension: Dimension,
}

impl fmt::Display for MissingLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dimension } = self;
        write!(f, "the request costs {dimension}, but no limit on {dimension} was given")
    }
}

impl std::error::Error for MissingLimit {}

/// A limiter that can't be built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A quota was given for an empty key.
    EmptyKey,
    /// A number that can't be meant.
    OutOfRange {
        /// The name of the number.
        name: &'static str,
        /// The number.
        value: String,
        /// The allowed range, in words.
        range: &'static str,
    },
    /// A quota needs a feature that this program was built without.
    MissingFeature(MissingFeature),
    /// A default quota of a provider ends its days in a time zone that isn't known.
    UnknownZone(UnknownZone),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyKey => f.write_str("a quota has an empty key; name a key or a glob"),
            Self::OutOfRange { name, value, range } => {
                write!(f, "{name} is {value}; give one {range}")
            }
            Self::MissingFeature(error) => error.fmt(f),
            Self::UnknownZone(error) => write!(f, "a provider's default quota: {error}"),
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
