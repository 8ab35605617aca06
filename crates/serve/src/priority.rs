use axum::http::{HeaderMap, HeaderName, StatusCode};

use super::problem::Problem;
use paceline::limiter::Priority;

/// Takes the priority of a request out of its headers, so that it isn't forwarded. `name` is the
/// configured header; without one, no header is read.
///
/// # Errors
/// Returns a problem if the header has several values or an invalid one.
pub(super) fn take(
    headers: &mut HeaderMap,
    name: Option<&HeaderName>,
) -> Result<Option<Priority>, Problem> {
    let priority = read(headers, name);
    if let Some(name) = name {
        headers.remove(name);
    }
    priority
}

/// Returns the priority in the headers of a request.
///
/// # Errors
/// Returns a problem if the header has several values or an invalid one.
pub(super) fn read(
    headers: &HeaderMap,
    name: Option<&HeaderName>,
) -> Result<Option<Priority>, Problem> {
    let Some(name) = name else { return Ok(None) };
    parse(headers, name)
        .ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "invalid_priority", INVALID))
}

/// Returns the priority in this header, or `None` if it is invalid.
fn parse(headers: &HeaderMap, name: &HeaderName) -> Option<Option<Priority>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Some(None) };
    let priority = value.to_str().ok()?.trim().parse().ok()?;
    values.next().is_none().then_some(Some(priority))
}

/// The text of the error for an invalid header.
pub(super) const INVALID: &str = "the priority header must have one value: interactive, normal, batch or a whole \
                       number from -128 to 127";
