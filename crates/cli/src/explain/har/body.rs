use std::io::Read;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use super::headers::NameValueList;
use super::lenient::{Text, lenient};

/// `postData` or `content`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Payload {
    #[serde(deserialize_with = "lenient")]
    mime_type: Text,
    #[serde(deserialize_with = "lenient")]
    text: Option<Text>,
    #[serde(deserialize_with = "lenient")]
    encoding: Text,
    #[serde(deserialize_with = "lenient")]
    params: NameValueList,
}

impl Payload {
    pub(super) fn mime_type(&self) -> &str {
        std::str::from_utf8(&self.mime_type.0).unwrap_or_default()
    }

    /// Returns the decoded bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let Some(Text(text)) = self.text else { return self.params.into_form() };
        match self.encoding.0.eq_ignore_ascii_case(b"base64") {
            true => inflated(BASE64.decode(without_breaks(&text)).unwrap_or(text)),
            false => inflated(text),
        }
    }
}

/// Decompresses gzip, detected by its first bytes; most tools save bodies decompressed.
fn inflated(bytes: Vec<u8>) -> Vec<u8> {
    if !bytes.starts_with(GZIP) {
        return bytes;
    }
    let mut inflated = Vec::new();
    // Truncated data is decompressed as far as possible; data that is not gzip is returned
    // unchanged.
    let read = MultiGzDecoder::new(&*bytes).take(MOST_INFLATED).read_to_end(&mut inflated);
    if read.is_err() && inflated.is_empty() { bytes } else { inflated }
}

/// Removes the line breaks that some tools write in base64.
fn without_breaks(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The magic number and the only method (RFC 1952).
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// The maximum decompressed size: a small file must not exhaust the memory.
const MOST_INFLATED: u64 = 64 * 1024 * 1024;
