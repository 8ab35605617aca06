use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::keys::Keys;
use crate::limiter::{AcquireError, Code, Refused};
use crate::quota::{Cost, Dimension};

/// Why a call through the layer failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RateLimitError {
    /// It wasn't sent: the limiter said no.
    Limited(AcquireError),
    /// The service inside failed.
    Inner(BoxError),
}

/// Any error at all, as tower's own layers pass it on.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The same, with the inner service's error as it is.
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
    pub(super) keys: Keys,
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "server mode reads it"))]
    pub(super) cost: Cost,
}

impl RateLimitError {
    /// What fell short and when it would have fitted, if it was the limiter that said no for want
    /// of quota.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Limited(error) => error.refused(),
            Self::Inner(_) => None,
        }
    }

    /// The limiter's code.
    pub fn code(&self) -> Option<Code> {
        self.refused().map(|refused| refused.code)
    }

    /// The key that was refused.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Limited(AcquireError::QueueFull { key, .. } | AcquireError::Removed { key }) => {
                Some(key)
            }
            _ => self.refused().map(|refused| refused.key.as_str()),
        }
    }

    /// The dimension that binds, if one does.
    pub fn dimension(&self) -> Option<&Dimension> {
        self.refused()?.dimension.as_ref()
    }

    /// How long after the call it would have fitted; `None` where that isn't known, or never.
    pub fn retry_after(&self) -> Option<Duration> {
        self.refused()?.retry_after()
    }

    /// The service's own error, if it was that and is an `E`.
    ///
    /// # Errors
    /// This error as it was.
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
            Self::Limited(_) => f.write_str("the request was not sent"),
            Self::Inner(_) => f.write_str("the service failed"),
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
