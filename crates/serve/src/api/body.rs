use std::error::Error;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::Body as _;

use super::error::{ApiError, unavailable};
use crate::app::App;
use crate::budget::{BudgetExceeded, BudgetPermit};
use crate::budgeted_body::BudgetedBody;
use crate::client_address::ClientAddress;
use crate::content_encoding::{DecodeError, Encoding};
use crate::length_limit::is_length_limit;
use crate::problem::Problem;
use paceline::middleware::{BufferedBody, PeekBody};
use paceline::{ErrorChain, causes};

/// Middleware that reads the body of a request into memory, decompressed. It counts in the budget for bodies until the
/// request has a response.
pub(super) async fn read(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let is_gzip = is_gzip(request.headers())?;
    if request.body().is_end_stream() {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    let client = ClientAddress::of_request(&parts.extensions);
    let permit = Arc::new(BudgetPermit::new(&app.bodies.share(client)));
    let body = BudgetedBody::new(body, &permit);
    let body = BufferedBody::read(body, &parts.headers, MAX_LENGTH).await;
    match body.error() {
        Some(error) => return Err(read_error(error)),
        None if !body.is_whole() => return Err(too_large()),
        None => {}
    }
    let body = match is_gzip {
        true => {
            let decode = |bytes: Option<&[u8]>| {
                Encoding::Gzip.decode(bytes.unwrap_or_default(), MAX_LENGTH, &permit)
            };
            let decoded = body.peek(decode).map_err(decode_error)?;
            parts.headers.remove(CONTENT_ENCODING);
            parts.headers.insert(CONTENT_LENGTH, decoded.len().into());
            Body::from(decoded)
        }
        false => Body::new(body),
    };
    let response = next.run(Request::from_parts(parts, body)).await;
    drop(permit);
    Ok(response)
}

/// Returns true if a body is compressed.
///
/// # Errors
/// Returns an error with the supported encodings (RFC 9110, 12.5.3) if it is compressed by another one.
fn is_gzip(headers: &HeaderMap) -> Result<bool, ApiError> {
    let Some(encoding) = headers.get(CONTENT_ENCODING) else { return Ok(false) };
    if Encoding::of(headers) == Some(Encoding::Gzip) {
        return Ok(true);
    }
    if encoding.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(false);
    }
    let detail = "unsupported content encoding; `accept-encoding` lists the supported ones; omit \
                  `content-encoding` for an uncompressed body";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let mut response = Problem::new(status, "unsupported_encoding", detail).into_response();
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    Err(ApiError::new(response))
}

/// Returns the error for a body that could not be read completely.
fn read_error(error: &(dyn Error + 'static)) -> ApiError {
    if is_length_limit(error) {
        return too_large();
    }
    if causes(error).any(|cause| cause.is::<BudgetExceeded>()) {
        return no_memory();
    }
    unreadable(ErrorChain(error).to_string())
}

fn decode_error(error: DecodeError) -> ApiError {
    match error {
        DecodeError::Invalid(error) => unreadable(format!("cannot decompress the body: {error}")),
        DecodeError::TooLong(_) => too_large(),
        DecodeError::NoMemory => no_memory(),
    }
}

fn too_large() -> ApiError {
    let detail = format!("the body exceeds {MAX_LENGTH} bytes, or `serve.bounds.body`");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail).into()
}

fn unreadable(detail: String) -> ApiError {
    Problem::new(StatusCode::BAD_REQUEST, "unreadable_body", detail).into()
}

fn no_memory() -> ApiError {
    unavailable("busy", "the memory for request bodies is used up (serve.bounds.buffered)")
}

/// In bytes; several times the largest valid request.
const MAX_LENGTH: usize = 256 * 1_024;
