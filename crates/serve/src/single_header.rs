use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::problem::Problem;

/// Returns the value of a header that a request has at most once.
///
/// # Errors
/// Returns a [`Problem`] for two values, of which servers may use either.
pub(super) fn only_value<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h [u8]>, Problem> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next();
    match values.next() {
        Some(_) => {
            let detail = format!("the header `{name}` is given more than once; send it once");
            Err(Problem::new(StatusCode::BAD_REQUEST, "repeated_header", detail))
        }
        None => Ok(value.map(HeaderValue::as_bytes)),
    }
}
