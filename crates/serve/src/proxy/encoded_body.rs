use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderValue, Request};

use super::client::RequestBody;
use crate::budget::BudgetPermit;
use crate::content_encoding::{DecodeError, Encoding};
use paceline::middleware::PeekBody;

/// The body of a request in a content encoding, and the headers that describe it.
///
/// While a request is read, it has the decompressed body. It is sent as it came, since its client has chosen the encoding
/// for the provider.
pub(super) struct EncodedBody {
    body: RequestBody,
    encoding: HeaderValue,
    length: Option<HeaderValue>,
}

impl EncodedBody {
    /// Decompresses the body of a request. Returns the compressed one; `None` if there is none, or its encoding is
    /// unknown, as one of several is.
    pub(super) fn take(
        request: &mut Request<RequestBody>,
        permit: &BudgetPermit,
        max_length: usize,
    ) -> Result<Option<Self>, DecodeError> {
        let Some(encoding) = Encoding::of(request.headers()) else { return Ok(None) };
        let decoded = request.body().peek(|body| {
            let body = body.unwrap_or_default();
            let most = body.len().saturating_mul(MAX_RATIO).max(MIN_BOUND).min(max_length);
            encoding.decode(body, most, permit)
        })?;
        let headers = request.headers_mut();
        let encoding = headers.remove(CONTENT_ENCODING).expect("the body has an encoding");
        let length = headers.get(CONTENT_LENGTH).cloned();
        if length.is_some() {
            headers.insert(CONTENT_LENGTH, decoded.len().into());
        }
        let body = std::mem::replace(request.body_mut(), decoded.into());
        Ok(Some(Self { body, encoding, length }))
    }

    /// Keeps a guard alive as long as the body.
    pub(super) fn held_with(self, guard: impl Send + 'static) -> Self {
        Self { body: self.body.held_with(guard), ..self }
    }

    /// Gives a request its body back.
    pub(super) fn restore(self, request: &mut Request<RequestBody>) {
        let Self { body, encoding, length } = self;
        *request.body_mut() = body;
        let headers = request.headers_mut();
        headers.insert(CONTENT_ENCODING, encoding);
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length);
        }
    }
}

/// The number of bytes that a byte may decompress to. JSON with a repetitive prompt has 5 to 30.
const MAX_RATIO: usize = 100;

/// The number of bytes to which a short body may decompress.
const MIN_BOUND: usize = 1 << 16;
