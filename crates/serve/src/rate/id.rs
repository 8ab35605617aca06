use std::hash::{BuildHasher, Hasher};

use bytes::Bytes;

use crate::request_id::hex;
use tollgate::Timestamp;
use tollgate::limiter::Ticket;

/// What the id of a grant says: enough to give it back, so that nothing is kept for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id {
    /// Which grant of this process it is.
    pub(super) number: u64,
    /// What gives it back; `None` where the permit is held.
    pub(super) ticket: Option<Ticket>,
    pub(super) tokens: u64,
}

impl Id {
    /// As its client is told it: with a mark that nobody can make who doesn't know the secret, and only
    /// for this key.
    pub(super) fn written(&self, key: &str, secret: &impl BuildHasher) -> Bytes {
        let (mut text, mut end) = ([b'-'; LONGEST], 0);
        for part in self.parts() {
            let digits = part.checked_ilog2().map_or(1, |highest| highest as usize / 4 + 1);
            hex(part, &mut text[end..end + digits]);
            end += digits + 1;
        }
        hex(self.mark(key, secret), &mut text[end..end + 16]);
        Bytes::copy_from_slice(&text[..end + 16])
    }

    /// The id that was written so for this key; `None` if it wasn't.
    pub(super) fn read(text: &str, key: &str, secret: &impl BuildHasher) -> Option<Self> {
        let mut parts = text.split('-').map(|part| u64::from_str_radix(part, 16).ok());
        let mut part = || parts.next().flatten();
        let (number, tokens, granted_at, version) = (part()?, part()?, part()?, part()?);
        let granted_at = Timestamp::from_nanos(granted_at);
        let (entry, mark) = (u32::try_from(part()?).ok()?, part()?);
        let version = version.checked_sub(1).map(u32::try_from).transpose().ok()?;
        let ticket = version.map(|version| Ticket { granted_at, version, entry });
        let id = Self { number, ticket, tokens };
        // Also refuses what isn't spelled as it was written.
        let same = id.mark(key, secret) == mark && id.written(key, secret) == text.as_bytes();
        same.then_some(id)
    }

    fn mark(&self, key: &str, secret: &impl BuildHasher) -> u64 {
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

/// Five numbers and a mark, of 16 digits each, with something between.
const LONGEST: usize = 6 * 17;

#[cfg(test)]
mod tests {
    use std::collections::hash_map::RandomState;

    use super::*;

    #[test]
    fn an_id_is_good_for_its_key_and_its_process_alone() {
        let secret = RandomState::new();
        let last = Ticket { granted_at: Timestamp::MAX, version: u32::MAX, entry: u32::MAX };
        for ticket in [None, Some(Ticket { version: 0, ..last }), Some(last)] {
            let id = Id { number: 7, ticket, tokens: 0 };
            let text = String::from_utf8(id.written("k", &secret).to_vec()).unwrap();
            assert_eq!(Id::read(&text, "k", &secret), Some(id));
            assert_eq!(Id::read(&text, "l", &secret), None);
            assert_eq!(Id::read(&text, "k", &RandomState::new()), None);
            for forged in [text.replacen('7', "8", 1), format!("0{text}"), format!("{text}-0")] {
                assert_eq!(Id::read(&forged, "k", &secret), None, "{forged}");
            }
        }
        for nonsense in ["", "-", "1", "1-2-3-4-5-6", "x-y-z-a-b-c", "+1-1-1-1-1-1"] {
            assert_eq!(Id::read(nonsense, "k", &secret), None);
        }
    }
}
