use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderValue};
use bytes::Bytes;

/// Generates ids for requests without one.
#[derive(Debug)]
pub(super) struct RequestIds {
    /// Random per process, so that ids of two processes differ.
    prefix: [u8; 9],
    last: AtomicU64,
}

impl RequestIds {
    pub(super) fn new() -> Self {
        let random = RandomState::new().build_hasher().finish() as u32;
        let mut prefix = [b'-'; 9];
        hex(random.into(), &mut prefix[..8]);
        Self { prefix, last: AtomicU64::new(0) }
    }

    /// Returns the id of a request: its own, or a new one.
    pub(super) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let given = headers.get("x-request-id");
        match given.filter(|id| (1..=MAX_LENGTH).contains(&id.len())) {
            Some(id) => id.clone(),
            None => self.next(),
        }
    }

    fn next(&self) -> HeaderValue {
        let mut text = [0; 21];
        text[..9].copy_from_slice(&self.prefix);
        hex(self.last.fetch_add(1, Ordering::Relaxed), &mut text[9..]);
        let text = Bytes::copy_from_slice(&text);
        let mut id = HeaderValue::from_maybe_shared(text)
            .expect("digits and a hyphen are a valid header value");
        // HPACK should not index a value that never repeats.
        id.set_sensitive(true);
        id
    }
}

/// Writes the lowest hexadecimal digits of a number that fit.
pub(super) fn hex(mut number: u64, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 0xf) as usize];
        number >>= 4;
    }
}

/// The maximum length of a client's id in bytes: it is logged.
pub(super) const MAX_LENGTH: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_differ_and_given_ids_are_kept() {
        let ids = RequestIds::new();
        let mut headers = HeaderMap::new();
        let [first, second] = [ids.of(&headers), ids.of(&headers)];
        assert!(first != second && first.len() == 21);
        headers.insert("x-request-id", HeaderValue::from_static("mine"));
        assert_eq!(ids.of(&headers), "mine");
        headers.insert("x-request-id", HeaderValue::from_str(&"x".repeat(129)).unwrap());
        assert_eq!(ids.of(&headers).len(), 21);
    }
}
