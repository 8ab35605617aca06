use std::error::Error;

use http_body_util::LengthLimitError;
use tollgate::causes;

/// Whether it comes of a body that was longer than its bound.
pub(super) fn is_of_length(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<LengthLimitError>())
}
