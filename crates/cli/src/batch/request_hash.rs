use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// The identity of a request: the first 128 bits of the SHA-256 of its path and body.
///
/// Written to each result line as `request_hash`. It is the same in every version and on every
/// machine. A body with other spaces or another order of keys is another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestHash([u8; 16]);

impl RequestHash {
    /// Returns the hash of a request with this path, including its query, and body.
    pub fn of(url_path: &str, body: &[u8]) -> Self {
        // Paths contain no line breaks, so the hashed bytes are unambiguous.
        let hash = Sha256::new().chain_update(url_path).chain_update(b"\n").chain_update(body);
        let (mut first, whole) = ([0; 16], hash.finalize());
        first.copy_from_slice(&whole[..16]);
        Self(first)
    }
}

impl fmt::Display for RequestHash {
    /// Writes 32 lower-case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl Serialize for RequestHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = Some(&text).filter(|text| text.len() == 32 && !text.starts_with('+'));
        let number = number.and_then(|text| u128::from_str_radix(text, 16).ok());
        let refused = || de::Error::custom("`request_hash` must be 32 hexadecimal digits");
        number.map(|number| Self(number.to_be_bytes())).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs are resumed by later versions: this value never changes.
    #[test]
    fn request_hash_is_sha256_prefix() {
        let hash = RequestHash::of("/v1/chat/completions", br#"{"model":"gpt-4o"}"#);
        assert_eq!(hash.to_string(), "71eb674bb2c71ce1f0e65b6fe2373605");
        assert_ne!(hash, RequestHash::of("/v1/chat/completions", br#"{"model": "gpt-4o"}"#));
        assert_ne!(hash, RequestHash::of("/v1/responses", br#"{"model":"gpt-4o"}"#));
    }

    #[test]
    fn request_hash_round_trips_and_rejects_other_text() {
        let hash = RequestHash::of("/v1/x", b"{}");
        let json = serde_json::to_string(&hash).expect("JSON");
        assert_eq!(serde_json::from_str::<RequestHash>(&json).ok(), Some(hash));
        let short = json.replacen(char::is_alphanumeric, "", 1);
        for text in [short.as_str(), "\"\"", "7", "\"+2345678901234567890123456789012\""] {
            assert!(serde_json::from_str::<RequestHash>(text).is_err(), "{text}");
        }
    }
}
