use std::fmt;

use rand::TryRng;
use rand::rngs::SysRng;

/// The id of a reservation: 128 random bits as 32 hexadecimal digits. A client that knows it can end
/// the reservation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ReservationId(u128);

impl ReservationId {
    /// Generates an id; `None` if the system's random number generator fails.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        SysRng.try_fill_bytes(&mut bytes).ok()?;
        Some(Self(u128::from_be_bytes(bytes)))
    }

    /// Parses an id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let well_formed = text.len() == DIGITS && text.bytes().all(digit);
        well_formed.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ReservationId {
    /// Omits the id: readers of logs could end the reservation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReservationId(..)")
    }
}

const DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_round_trips_and_is_hidden_in_debug() {
        let id = ReservationId::random().unwrap();
        assert_eq!(ReservationId::parse(&id.to_string()), Some(id));
        assert_ne!(ReservationId::random(), Some(id));
        assert_eq!(format!("{id:?}"), "ReservationId(..)");
        for text in ["", "0", "+0000000000000000000000000000000", &"A".repeat(32), &"0".repeat(33)]
        {
            assert_eq!(ReservationId::parse(text), None, "{text}");
        }
    }
}
