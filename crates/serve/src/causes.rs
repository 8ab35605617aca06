use std::error::Error;
use std::iter::successors;

use http_body_util::LengthLimitError;

/// An error, and what it says that it comes from.
pub(super) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |error| (**error).source())
}

/// Whether it comes of a body that was longer than its bound.
pub(super) fn is_of_length(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<LengthLimitError>())
}
