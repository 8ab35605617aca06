use std::any::Any;
use std::error::Error;

use super::error::{BoxError, RateLimitError};
use crate::error_chain::causes;
use crate::limiter::AcquireError;

/// Returns `true` if an error means that the request was not sent: the client could not connect, or an
/// inner rate-limit layer refused it.
///
/// Inspects the error's causes, including those inside tower's `BoxError`. An error of an unknown
/// client type counts as that of a sent request.
pub(super) fn is_unsent<E: 'static>(error: &E) -> bool {
    outermost(error).is_some_and(|error| causes(error).any(is_unsent_cause))
}

/// A client's error that means that the server has not read the request. The layer releases the
/// reservation, and may retry the request.
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
        f.write_str("connection closed before the request was read")
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
/// use paceline::limiter::{AcquireError, Limiter};
/// use paceline::middleware::{RateLimitError, find_refusal};
/// let error = RateLimitError::Limited(AcquireError::Closed);
/// let wrapped = std::io::Error::other(error);
/// assert_eq!(find_refusal(&wrapped), Some(&AcquireError::Closed));
/// ```
pub fn find_refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a AcquireError> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

pub(super) type Cause<'a> = &'a (dyn Error + 'static);

/// Returns the error itself, if its type is known.
pub(super) fn outermost(error: &dyn Any) -> Option<Cause<'_>> {
    boxed_error(error).or_else(|| client_error(error))
}

fn boxed_error(error: &dyn Any) -> Option<Cause<'_>> {
    let limited = error.downcast_ref::<RateLimitError>().map(|error| error as _);
    limited.or_else(|| error.downcast_ref::<BoxError>().map(|error| &**error as _))
}

#[cfg(not(feature = "hyper-util"))]
fn client_error(_: &dyn Any) -> Option<Cause<'_>> {
    None
}

#[cfg(feature = "hyper-util")]
fn client_error(error: &dyn Any) -> Option<Cause<'_>> {
    let known = downcast::<hyper_util::client::legacy::Error>(error);
    #[cfg(feature = "reqwest")]
    let known = known.or_else(|| downcast::<reqwest::Error>(error));
    #[cfg(feature = "reqwest-middleware")]
    let known = known.or_else(|| downcast::<reqwest_middleware::Error>(error));
    known
}

#[cfg(feature = "hyper-util")]
fn downcast<E: Error + 'static>(error: &dyn Any) -> Option<Cause<'_>> {
    error.downcast_ref::<E>().map(|error| error as _)
}

pub(super) fn is_unsent_cause(cause: Cause<'_>) -> bool {
    if cause.is::<Unsent>() {
        return true;
    }
    #[cfg(feature = "reqwest")]
    if is_builder_error(cause) {
        return true;
    }
    cause.is::<AcquireError>() || is_connect_error(cause)
}

/// Returns `true` for a connect error of hyper-util's client, or of a client that is built on it.
pub(super) fn is_connect_error(cause: Cause<'_>) -> bool {
    #[cfg(feature = "hyper-util")]
    if let Some(error) = cause.downcast_ref::<hyper_util::client::legacy::Error>() {
        return error.is_connect();
    }
    let _ = cause;
    false
}

/// Returns `true` if reqwest could not build the request.
#[cfg(feature = "reqwest")]
fn is_builder_error(cause: Cause<'_>) -> bool {
    reqwest_error(cause).is_some_and(reqwest::Error::is_builder)
}

/// Returns `true` if reqwest has received a response that it doesn't pass on.
pub(super) fn is_answered(cause: Cause<'_>) -> bool {
    #[cfg(feature = "reqwest")]
    if let Some(error) = reqwest_error(cause) {
        return error.is_redirect() || error.is_status() || error.is_decode();
    }
    let _ = cause;
    false
}

/// Returns `true` if the text of an error contains the URL of its request.
pub(super) fn has_url(cause: Cause<'_>) -> bool {
    #[cfg(feature = "reqwest")]
    if let Some(error) = reqwest_error(cause) {
        return error.url().is_some();
    }
    let _ = cause;
    false
}

#[cfg(feature = "reqwest")]
fn reqwest_error(cause: Cause<'_>) -> Option<&reqwest::Error> {
    #[cfg(feature = "reqwest-middleware")]
    if let Some(reqwest_middleware::Error::Reqwest(error)) = cause.downcast_ref() {
        return Some(error);
    }
    cause.downcast_ref()
}
