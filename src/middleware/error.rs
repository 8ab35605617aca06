use std::fmt;

use crate::limiter::{AcquireError, Code};
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
    /// The limiter's code, if it was the limiter that said no for want of quota.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Limited(AcquireError::Refused(refused)) => Some(refused.code),
            _ => None,
        }
    }

    /// The key that was refused.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Limited(AcquireError::Refused(refused)) => Some(&refused.key),
            Self::Limited(
                AcquireError::DeadlineExceeded { key, .. } | AcquireError::QueueFull { key, .. },
            ) => Some(key),
            _ => None,
        }
    }

    /// The dimension that binds, if one does.
    pub fn dimension(&self) -> Option<&Dimension> {
        match self {
            Self::Limited(AcquireError::Refused(refused)) => refused.dimension.as_ref(),
            _ => None,
        }
    }

    /// The service's own error, if it was that.
    pub fn into_inner(self) -> Option<E> {
        match self {
            Self::Inner(error) => Some(error),
            Self::Limited(_) => None,
        }
    }
}

impl<E> fmt::Display for RateLimitError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(_) => f.write_str("not sent: out of quota"),
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
