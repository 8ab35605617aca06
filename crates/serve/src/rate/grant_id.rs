use std::hash::{BuildHasher, Hasher};

use bytes::Bytes;

use crate::request_id::hex;
use paceline::Timestamp;
use paceline::limiter::Ticket;

/// The id of a grant. It contains everything that is needed to return the grant, so that the server
/// stores nothing for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GrantId {
    /// The number of the grant in this process.
    pub(super) number: u64,
    /// The ticket that returns the quota; `None` if the permit is held.
    pub(super) ticket: Option<Ticket>,
    pub(super) tokens: u64,
}

impl GrantId {
    /// Formats the id, with a MAC of the id and the key that cannot be computed without the secret.
    pub(super) fn format(&self, key: &str, secret: &impl BuildHasher) -> Bytes {
        let (mut text, mut end) = ([b'-'; MAX_LENGTH], 0);
        for part in self.parts() {
            let digits = part.checked_ilog2().map_or(1, |highest| highest as usize / 4 + 1);
            hex(part, &mut text[end..end + digits]);
            end += digits + 1;
        }
        hex(self.mac(key, secret), &mut text[end..end + 16]);
        Bytes::copy_from_slice(&text[..end + 16])
    }

    /// Parses an id that was formatted for this key; `None` if the MAC differs.
    pub(super) fn parse(text: &str, key: &str, secret: &impl BuildHasher) -> Option<Self> {
        let mut parts = text.split('-').map(|part| u64::from_str_radix(part, 16).ok());
        let mut part = || parts.next().flatten();
        let (number, tokens, granted_at, version) = (part()?, part()?, part()?, part()?);
        let granted_at = Timestamp::from_nanos(granted_at);
        let (entry, mac) = (u32::try_from(part()?).ok()?, part()?);
        let version = version.checked_sub(1).map(u32::try_from).transpose().ok()?;
        let ticket = version.map(|version| Ticket { granted_at, version, entry });
        let id = Self { number, ticket, tokens };
        // Comparing the text also rejects other spellings of the numbers.
        let same = id.mac(key, secret) == mac && id.format(key, secret) == text.as_bytes();
        same.then_some(id)
    }

    fn mac(&self, key: &str, secret: &impl BuildHasher) -> u64 {
        let mut hasher = secret.build_hasher();
        self.parts().into_iter().for_each(|part| hasher.write_u64(part));
        hasher.write(key.as_bytes());
        hasher.finish()
    }

    fn parts(&self) -> [u64; 5] {
        let Self { number, ticket, tokens } = *self;
        let Some(Ticket { granted_at, version, entry }) = ticket else {
            return [number, tokens, 0, 0, 0];
        };
        let version = u64::from(version) + 1;
        [number, tokens, granted_at.as_nanos(), version, entry.into()]
    }
}

/// Five numbers and a MAC of 16 digits each, with separators.
const MAX_LENGTH: usize = 6 * 17;

#[cfg(test)]
mod tests {
    use std::collections::hash_map::RandomState;

    use super::*;

    #[test]
    fn id_is_valid_only_for_one_key_and_process() {
        let secret = RandomState::new();
        let last = Ticket { granted_at: Timestamp::MAX, version: u32::MAX, entry: u32::MAX };
        for ticket in [None, Some(Ticket { version: 0, ..last }), Some(last)] {
            let id = GrantId { number: 7, ticket, tokens: 0 };
            let text = String::from_utf8(id.format("k", &secret).to_vec()).unwrap();
            assert_eq!(GrantId::parse(&text, "k", &secret), Some(id));
            assert_eq!(GrantId::parse(&text, "l", &secret), None);
            assert_eq!(GrantId::parse(&text, "k", &RandomState::new()), None);
            for forged in [text.replacen('7', "8", 1), format!("0{text}"), format!("{text}-0")] {
                assert_eq!(GrantId::parse(&forged, "k", &secret), None, "{forged}");
            }
        }
        for invalid in ["", "-", "1", "1-2-3-4-5-6", "x-y-z-a-b-c", "+1-1-1-1-1-1"] {
            assert_eq!(GrantId::parse(invalid, "k", &secret), None);
        }
    }
}
