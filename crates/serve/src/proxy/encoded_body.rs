use std::io::{self, Read};

use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue, Request};
use brotli_decompressor::Decompressor;
use flate2::bufread::{GzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

use super::client::RequestBody;
use super::memory_budget::BudgetPermit;
use tollgate::middleware::PeekBody;

/// The body of a request in a content encoding, and the headers that describe it.
///
/// While a request is read, it has the decompressed body. It is sent as it came, since its client has chosen the encoding
/// for the provider.
pub(super) struct EncodedBody {
    body: RequestBody,
    encoding: HeaderValue,
    length: Option<HeaderValue>,
}

/// The reason why a body can't be read.
#[derive(Debug)]
pub(super) enum DecodeError {
    /// It isn't of its encoding.
    Invalid(io::Error),
    /// It has more than this many bytes.
    TooLong(usize),
    /// The memory for bodies is used up.
    NoMemory,
}

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Gzip,
    /// The zlib format (RFC 9110, 8.4.1.2).
    Deflate,
    Brotli,
    Zstd,
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

impl Encoding {
    /// Returns the encoding, if there is one which is known.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(CONTENT_ENCODING).into_iter();
        let (name, None) = (lines.next()?.as_bytes(), lines.next()) else { return None };
        let known = ENCODINGS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        known.map(|(_, encoding)| *encoding)
    }

    fn decode(
        self,
        mut body: &[u8],
        most: usize,
        permit: &BudgetPermit,
    ) -> Result<Vec<u8>, DecodeError> {
        let decoded = match self {
            Self::Gzip => read(GzDecoder::new(&mut body), most, permit),
            Self::Deflate => read(ZlibDecoder::new(&mut body), most, permit),
            // It reports what follows in its buffer, which holds the whole body.
            Self::Brotli => {
                let length = body.len().max(1);
                read(Decompressor::new(&mut body, length), most, permit)
            }
            Self::Zstd => {
                let decoder = StreamingDecoder::new(&mut body);
                let decoder = decoder.map_err(|e| DecodeError::Invalid(io::Error::other(e)))?;
                read(decoder, most, permit)
            }
        }?;
        // Another server may read what follows as a part of the body.
        match body.is_empty() {
            true => Ok(decoded),
            false => Err(DecodeError::Invalid(io::Error::other("data follows its end"))),
        }
    }
}

/// Reads at most this many bytes, which it takes from the budget.
fn read(
    mut decoder: impl Read,
    most: usize,
    permit: &BudgetPermit,
) -> Result<Vec<u8>, DecodeError> {
    let mut decoded = Vec::new();
    loop {
        let part = decoder.by_ref().take(PART).read_to_end(&mut decoded);
        let part = part.map_err(DecodeError::Invalid)?;
        if decoded.len() > most {
            return Err(DecodeError::TooLong(most));
        }
        if !permit.try_grow(part) {
            return Err(DecodeError::NoMemory);
        }
        if part == 0 {
            return Ok(decoded);
        }
    }
}

/// The names of content encodings (RFC 9110, 8.4.1; RFC 7932; RFC 8878).
const ENCODINGS: [(&str, Encoding); 5] = [
    ("gzip", Encoding::Gzip),
    ("x-gzip", Encoding::Gzip),
    ("deflate", Encoding::Deflate),
    ("br", Encoding::Brotli),
    ("zstd", Encoding::Zstd),
];

/// The number of bytes that a byte may decompress to. JSON with a repetitive prompt has 5 to 30.
const MAX_RATIO: usize = 100;

/// The number of bytes to which a short body may decompress.
const MIN_BOUND: usize = 1 << 16;

/// The number of bytes that are read before the budget is checked.
const PART: u64 = 1 << 16;
