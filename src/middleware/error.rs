use std::fmt;
use std::time::Duration;

use crate::limiter::{AcquireError, Code, Refused};
use crate::quota::Dimension;

/// Why a call through the layer failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RateLimitError<E> {
    /// It wasn't sent: the limiter said no.
    Limited(AcquireError),
    /// The service inside failed.
    Inner(E),
}

impl<E> RateLimitError<E> {
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
            Self::Limited(AcquireError::QueueFull { key, .. }) => Some(key),
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

    /// The service's own error, if it was that.
    pub fn into_inner(self) -> Option<E> {
        match self {
            Self::Inner(error) => Some(error),
            Self::Limited(_) => None,
        }
    }
}

impl RateLimitError<BoxError> {
    /// The limiter's [`AcquireError`], or the service's own error, in a box.
    ///
    /// Most of tower's layers answer a boxed error, which is no [`Error`](std::error::Error) itself,
    /// and so a `RateLimitError` of one isn't either. Between the layer and another such layer
    /// around it goes `.map_err(RateLimitError::into_boxed)`.
    pub fn into_boxed(self) -> BoxError {
        match self {
            Self::Limited(error) => error.into(),
            Self::Inner(error) => error,
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<E> fmt::Display for RateLimitError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(_) => f.write_str("the request was not sent"),
            Self::Inner(_) => f.write_str("the service failed"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RateLimitError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Limited(error) => Some(error),
            Self::Inner(error) => Some(error),
        }
    }
}
