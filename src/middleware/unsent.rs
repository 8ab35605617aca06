use std::any::Any;
use std::error::Error;
use std::iter::successors;

use super::error::{BoxError, RateLimitError};
use crate::limiter::AcquireError;

/// Whether an error says that the request never left: the client got no connection, or another
/// layer of ours further in didn't let it through.
///
/// Sees through the boxes that tower's own layers put errors into.
pub(super) fn never_left<E: 'static>(error: &E) -> bool {
    let error: &dyn Any = error;
    let boxed = error.downcast_ref::<BoxError>().map(|error| &**error as Cause<'_>);
    let ours = || error.downcast_ref::<RateLimitError>().map(|error| error as _);
    let first = boxed.or_else(ours).or_else(|| of_client(error));
    successors(first, |cause| (**cause).source()).any(is_unsent)
}

type Cause<'a> = &'a (dyn Error + 'static);

#[cfg(feature = "reqwest")]
fn of_client(error: &dyn Any) -> Option<Cause<'_>> {
    error.downcast_ref::<reqwest::Error>().map(|error| error as _)
}

#[cfg(feature = "reqwest")]
fn is_unsent(cause: Cause<'_>) -> bool {
    let client = cause.downcast_ref::<reqwest::Error>();
    cause.is::<AcquireError>() || client.is_some_and(|e| e.is_connect() || e.is_builder())
}

/// Nothing is known of other clients' errors.
#[cfg(not(feature = "reqwest"))]
fn of_client(_: &dyn Any) -> Option<Cause<'_>> {
    None
}

#[cfg(not(feature = "reqwest"))]
fn is_unsent(cause: Cause<'_>) -> bool {
    cause.is::<AcquireError>()
}
