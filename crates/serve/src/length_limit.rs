use std::error::Error;

use http_body_util::LengthLimitError;
use paceline::causes;

/// Returns true if the error was caused by a body above its length limit.
pub(super) fn is_length_limit(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<LengthLimitError>())
}
