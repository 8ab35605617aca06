use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::scope_key::ScopeKeys;
use crate::limiter::{AcquireError, Code, Refused};
use crate::quota::{Cost, Dimension};

/// The error of a call through the layer. Its text includes that of its source.
#[derive(Debug)]
#[non_exhaustive]
pub enum RateLimitError {
    /// The limiter refused the request, which was not sent.
    Limited(AcquireError),
    /// The inner service failed.
    Inner(BoxError),
}

/// A boxed error, as in tower's own layers.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The error of a call, with the inner service's error unboxed.
#[derive(Debug)]
pub(super) enum Failure<E> {
    Limited(Box<RefusedRequest>),
    Inner(E),
}

/// A request that the limiter refused.
#[derive(Debug)]
pub(super) struct RefusedRequest {
    pub(super) error: AcquireError,
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "server mode reads it"))]
    pub(super) keys: ScopeKeys,
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "server mode reads it"))]
    pub(super) cost: Cost,
}

impl RateLimitError {
    /// Returns the limiter's refusal, with its reason and the time at which the request fits. `None` for
    /// other errors, also if the queue is full or the limiter is closed.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Limited(error) => error.refused(),
            Self::Inner(_) => None,
        }
    }

    /// Returns the code of the refusal, if the limiter refused the request.
    pub fn code(&self) -> Option<Code> {
        self.refused().map(|refused| refused.code)
    }

    /// Returns the key whose limits, queue or removal caused the refusal.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Limited(AcquireError::QueueFull { key, .. } | AcquireError::Removed { key }) => {
                Some(key)
            }
            _ => self.refused().map(|refused| refused.key.as_str()),
        }
    }

    /// Returns the dimension that lacks quota, if a limit caused the refusal.
    pub fn dimension(&self) -> Option<&Dimension> {
        self.refused()?.dimension.as_ref()
    }

    /// Returns the time from the refusal until the request fits, or `None` if it is unknown or the
    /// request never fits.
    pub fn retry_after(&self) -> Option<Duration> {
        self.refused()?.retry_after()
    }

    /// Returns the inner service's error, if its type is `E`.
    ///
    /// # Errors
    /// Returns this error unchanged otherwise.
    pub fn into_inner<E: Error + 'static>(self) -> Result<E, Self> {
        match self {
            Self::Inner(error) => error.downcast().map(|error| *error).map_err(Self::Inner),
            Self::Limited(_) => Err(self),
        }
    }
}

impl<E: Into<BoxError>> From<Failure<E>> for RateLimitError {
    fn from(failure: Failure<E>) -> Self {
        match failure {
            Failure::Limited(refused) => Self::Limited(refused.error),
            Failure::Inner(error) => Self::Inner(error.into()),
        }
    }
}

impl fmt::Display for RateLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(error) => write!(f, "rate limited: {error}"),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

impl Error for RateLimitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Limited(error) => Some(error),
            Self::Inner(error) => Some(&**error),
        }
    }
}
