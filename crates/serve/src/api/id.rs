use std::fmt;

use rand::TryRng;
use rand::rngs::SysRng;

/// What a reservation is called: 128 bits that nobody can guess, as 32 hexadecimal digits. Who knows
/// it may end the reservation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(u128);

impl Id {
    /// A new one, of the system's randomness; `None` if it has none.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        SysRng.try_fill_bytes(&mut bytes).ok()?;
        Some(Self(u128::from_be_bytes(bytes)))
    }

    /// The one that this text names.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let well_formed = text.len() == DIGITS && text.bytes().all(digit);
        well_formed.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Id {
    /// Without it: who reads logs could end the reservation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Id(..)")
    }
}

const DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_not_shown() {
        let id = Id::random().unwrap();
        assert_eq!(Id::parse(&id.to_string()), Some(id));
        assert_ne!(Id::random(), Some(id));
        assert_eq!(format!("{id:?}"), "Id(..)");
        for text in ["", "0", "+0000000000000000000000000000000", &"A".repeat(32), &"0".repeat(33)]
        {
            assert_eq!(Id::parse(text), None, "{text}");
        }
    }
}
