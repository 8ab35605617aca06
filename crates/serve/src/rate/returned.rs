use std::collections::HashMap;
use tollgate::Timestamp;

/// Which grants were given back, for as long as a second time would matter.
///
/// One bit a grant, 64 in a row together: a client that takes and gives back in turn needs next to
/// nothing. A key can't take more than its part of the room.
#[derive(Debug, Default)]
pub(super) struct Returned {
    keys: HashMap<u64, Key>,
    /// How many rows there are in all.
    rows: usize,
    /// When the first of the keys has nothing to be known any more.
    first_ends: Timestamp,
}

/// Why a grant can't be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotReturned {
    /// It was before.
    Again,
    /// More were given back than are kept in mind, and to forget one could give its slot twice.
    Full,
}

/// Those of a key: older ones, which are forgotten together, and those since.
#[derive(Debug, Default)]
struct Key {
    older: Span,
    newer: Span,
}

#[derive(Debug, Default)]
struct Span {
    /// Until when one of them matters.
    until: Timestamp,
    rows: HashMap<u64, u64>,
}

impl Returned {
    /// Notes that this grant of a key (by its hash) is given back; it matters until that time.
    pub(super) fn note(
        &mut self,
        (key, number): (u64, u64),
        until: Timestamp,
        now: Timestamp,
    ) -> Result<(), NotReturned> {
        if self.rows >= MOST && self.first_ends <= now {
            self.sweep(now);
        }
        let room = self.rows < MOST;
        let known = self.keys.entry(key).or_default();
        let before = known.rows();
        known.forget(now);
        let noted = known.note(number, until, room);
        let (rows, until) = (known.rows(), known.until());
        self.rows = self.rows + rows - before;
        match rows {
            0 => drop(self.keys.remove(&key)),
            _ => self.first_ends = self.first_ends.min(until),
        }
        noted
    }

    /// Forgets what doesn't matter any more.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        self.keys.retain(|_, key| {
            key.forget(now);
            key.rows() > 0
        });
        self.rows = self.keys.values().map(Key::rows).sum();
        self.first_ends = self.keys.values().map(Key::until).min().unwrap_or(Timestamp::MAX);
    }
}

impl Key {
    fn note(&mut self, number: u64, until: Timestamp, room: bool) -> Result<(), NotReturned> {
        let (row, bit) = (number / 64, 1_u64 << (number % 64));
        let has = |span: &Span| span.rows.get(&row).is_some_and(|bits| bits & bit != 0);
        if has(&self.older) || has(&self.newer) {
            return Err(NotReturned::Again);
        }
        let is_new = !self.newer.rows.contains_key(&row);
        if is_new && (!room || self.rows() >= MOST_OF_A_KEY) {
            return Err(NotReturned::Full);
        }
        *self.newer.rows.entry(row).or_default() |= bit;
        self.newer.until = self.newer.until.max(until);
        Ok(())
    }

    /// Once the older ones don't matter, the newer ones are the older ones.
    fn forget(&mut self, now: Timestamp) {
        for _ in 0..2 {
            if self.older.until <= now {
                self.older = std::mem::take(&mut self.newer);
            }
        }
    }

    fn rows(&self) -> usize {
        self.older.rows.len() + self.newer.rows.len()
    }

    /// When something of it can be forgotten.
    fn until(&self) -> Timestamp {
        match self.older.rows.is_empty() {
            true => self.newer.until,
            false => self.older.until,
        }
    }
}

/// Some 32 MB.
const MOST: usize = 1_000_000;

/// At least as many grants, and 64 times as many that were given back one after the other.
const MOST_OF_A_KEY: usize = MOST / 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn a_grant_is_given_back_once_and_forgotten_when_it_does_not_matter_any_more() {
        let mut returned = Returned::default();
        assert_eq!(returned.note((7, 1), at(100), at(0)), Ok(()));
        assert_eq!(returned.note((7, 1), at(100), at(99)), Err(NotReturned::Again));
        assert_eq!(returned.note((7, 2), at(150), at(99)), Ok(()));
        assert_eq!(returned.note((7, 3), at(250), at(150)), Ok(()));
        assert_eq!(returned.rows, 1);
        returned.sweep(at(250));
        assert_eq!((returned.keys.len(), returned.rows), (0, 0));
    }

    #[test]
    fn none_is_forgotten_early_while_others_come_and_go() {
        let mut returned = Returned::default();
        // One each ten, each of which matters for a hundred.
        for n in 0..1000_u64 {
            assert_eq!(returned.note((7, n), at(n * 10 + 100), at(n * 10)), Ok(()));
            for recent in n.saturating_sub(9)..=n {
                let again = returned.note((7, recent), at(n * 10 + 100), at(n * 10));
                assert_eq!(again, Err(NotReturned::Again), "{recent} at {n}");
            }
        }
        assert!(returned.rows <= 4, "{}", returned.rows);
    }

    #[test]
    fn whichever_is_given_back_first_is_known_for_its_own_time() {
        let mut returned = Returned::default();
        assert_eq!(returned.note((7, 2), at(150), at(98)), Ok(()));
        assert_eq!(returned.note((7, 1), at(100), at(99)), Ok(()));
        assert_eq!(returned.note((7, 2), at(150), at(149)), Err(NotReturned::Again));
    }

    #[test]
    fn millions_that_are_given_back_in_turn_take_little() {
        let mut returned = Returned::default();
        assert!((0..2_000_000).all(|number| returned.note((7, number), at(100), at(0)).is_ok()));
        assert_eq!(returned.note((7, 0), at(100), at(99)), Err(NotReturned::Again));
        // The first of all counts among those that are forgotten first.
        assert!(returned.rows <= 2_000_000 / 64 + 1);
    }

    #[test]
    fn a_key_with_a_long_window_leaves_room_to_the_others() {
        let mut returned = Returned::default();
        let part = MOST_OF_A_KEY as u64;
        // A row each: others had the numbers in between.
        assert!((0..part).all(|n| returned.note((7, n * 64), at(1_000), at(0)).is_ok()));
        assert_eq!(returned.note((7, part * 64), at(1_000), at(0)), Err(NotReturned::Full));
        assert_eq!(returned.note((8, part * 64 + 1), at(100), at(0)), Ok(()));
        assert_eq!(returned.note((7, 0), at(1_000), at(999)), Err(NotReturned::Again));
        assert_eq!(returned.note((7, part * 64), at(2_000), at(1_000)), Ok(()));
    }

    #[test]
    fn when_there_is_no_room_at_all_what_has_passed_makes_some() {
        let mut returned = Returned::default();
        let keys = (MOST / MOST_OF_A_KEY) as u64 + 1;
        let fill = |returned: &mut Returned, key, until| {
            (0..MOST_OF_A_KEY as u64)
                .all(|n| returned.note((key, n * 64), at(until), at(0)).is_ok())
        };
        assert!((1..keys).all(|key| fill(&mut returned, key, 1_000 + key)));
        assert_eq!(returned.rows, MOST);
        assert_eq!(returned.note((99, 1), at(100), at(0)), Err(NotReturned::Full));
        assert_eq!(returned.note((99, 1), at(2_000), at(1_001)), Ok(()));
        assert_eq!(returned.rows, MOST - MOST_OF_A_KEY + 1);
    }
}
