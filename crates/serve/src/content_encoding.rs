use std::io::{self, Read};

use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use brotli_decompressor::Decompressor;
use flate2::bufread::{GzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

use super::budget::BudgetPermit;

/// A content encoding of request bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    /// The zlib format (RFC 9110, 8.4.1.2).
    Deflate,
    Brotli,
    Zstd,
}

/// The reason why a body can't be decompressed.
#[derive(Debug)]
pub(super) enum DecodeError {
    /// It isn't of its encoding.
    Invalid(io::Error),
    /// It has more than this many bytes.
    TooLong(usize),
    /// The memory for bodies is used up.
    NoMemory,
}

impl Encoding {
    /// Returns the encoding of a body, if there is one which is known.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(CONTENT_ENCODING).into_iter();
        let (name, None) = (lines.next()?.as_bytes(), lines.next()) else { return None };
        let known = ENCODINGS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        known.map(|(_, encoding)| *encoding)
    }

    /// Decompresses a whole body to at most this many bytes, which are taken from the budget.
    pub(super) fn decode(
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
        permit.grow(part).map_err(|_| DecodeError::NoMemory)?;
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

/// The number of bytes that are read before the budget is checked.
const PART: u64 = 1 << 16;
