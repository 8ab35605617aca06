use std::any::Any;
use std::error::Error;

use super::error::{BoxError, RateLimitError};
use crate::error_chain::causes;
use crate::limiter::AcquireError;

/// Returns `true` if an error means that the request was never sent: the client got no connection, or
/// another rate-limit layer further in refused it.
///
/// Looks through the boxes that tower's layers put errors into. A client of unknown type counts as
/// having sent the request.
pub(super) fn never_left<E: 'static>(error: &E) -> bool {
    outermost(error).is_some_and(|error| causes(error).any(is_unsent))
}

/// An error of a client that knows that the server has not read the request. The layer releases the
/// reservation, and may send the request again.
#[derive(Debug)]
pub struct Unsent(BoxError);

impl Unsent {
    /// Wraps the client's error.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl std::fmt::Display for Unsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection had been closed before the request was read")
    }
}

impl Error for Unsent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// Returns the limiter's refusal from an error or its causes, also if a client or another layer has
/// wrapped it.
///
/// ```
/// use tollgate::limiter::{AcquireError, Limiter};
/// use tollgate::middleware::{RateLimitError, find_refusal};
/// let error = RateLimitError::Limited(AcquireError::Closed);
/// let wrapped = std::io::Error::other(error);
/// assert_eq!(find_refusal(&wrapped), Some(&AcquireError::Closed));
/// ```
pub fn find_refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a AcquireError> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

type Cause<'a> = &'a (dyn Error + 'static);

/// Returns the error itself, if its type is known.
fn outermost(error: &dyn Any) -> Option<Cause<'_>> {
    boxed(error).or_else(|| of_client(error))
}

fn boxed(error: &dyn Any) -> Option<Cause<'_>> {
    let ours = error.downcast_ref::<RateLimitError>().map(|error| error as _);
    ours.or_else(|| error.downcast_ref::<BoxError>().map(|error| &**error as _))
}

#[cfg(not(feature = "hyper-util"))]
fn of_client(_: &dyn Any) -> Option<Cause<'_>> {
    None
}

#[cfg(feature = "hyper-util")]
fn of_client(error: &dyn Any) -> Option<Cause<'_>> {
    let known = typed::<hyper_util::client::legacy::Error>(error);
    #[cfg(feature = "reqwest")]
    let known = known.or_else(|| typed::<reqwest::Error>(error));
    #[cfg(feature = "reqwest-middleware")]
    let known = known.or_else(|| typed::<reqwest_middleware::Error>(error));
    known
}

#[cfg(feature = "hyper-util")]
fn typed<E: Error + 'static>(error: &dyn Any) -> Option<Cause<'_>> {
    error.downcast_ref::<E>().map(|error| error as _)
}

fn is_unsent(cause: Cause<'_>) -> bool {
    if cause.is::<Unsent>() {
        return true;
    }
    cause.is::<AcquireError>() || is_unconnected(cause) || is_unbuilt(cause)
}

/// What hyper-util's client says of a connection, and every client that is built on it.
fn is_unconnected(cause: Cause<'_>) -> bool {
    #[cfg(feature = "hyper-util")]
    if let Some(error) = cause.downcast_ref::<hyper_util::client::legacy::Error>() {
        return error.is_connect();
    }
    let _ = cause;
    false
}

/// A request that reqwest could make nothing of.
fn is_unbuilt(cause: Cause<'_>) -> bool {
    #[cfg(feature = "reqwest-middleware")]
    if let Some(reqwest_middleware::Error::Reqwest(error)) = cause.downcast_ref() {
        return error.is_builder();
    }
    #[cfg(feature = "reqwest")]
    if let Some(error) = cause.downcast_ref::<reqwest::Error>() {
        return error.is_builder();
    }
    let _ = cause;
    false
}
