//! Many `custom_id`s in little memory.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// A `custom_id` as a 128-bit hash.
///
/// Two of a million different ids meet with a chance of about 10⁻²⁷. The hash may differ between
/// builds: it is for one run, and is never read back from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(u64, u64);

impl Id {
    /// The hash of this `custom_id`.
    pub fn of(custom_id: &str) -> Self {
        Self(half(0, custom_id), half(1, custom_id))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

/// Ids, each with the number of the line where it was first seen.
///
/// Takes 25 bytes per slot and at most about 58 bytes per id, however long the ids are.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    lines: HashMap<Id, u64, FixedState>,
}

impl Ids {
    /// Notes that `id` stands in line `number`, unless it stood in an earlier one: then that
    /// line's number.
    ///
    /// # Errors
    /// The number of the line where the id was first seen.
    pub fn insert(&mut self, id: Id, number: u64) -> Result<(), u64> {
        match self.lines.entry(id) {
            Entry::Occupied(first) => Err(*first.get()),
            Entry::Vacant(slot) => {
                slot.insert(number);
                Ok(())
            }
        }
    }

    /// The line where this id was first seen.
    pub fn line(&self, id: Id) -> Option<u64> {
        self.lines.get(&id).copied()
    }

    /// Whether this id was seen.
    pub fn contains(&self, id: Id) -> bool {
        self.lines.contains_key(&id)
    }

    /// How many ids were seen.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether none was seen.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The memory in use, in bytes.
    pub fn memory(&self) -> usize {
        self.lines.allocation_size()
    }
}

fn half(which: u8, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    which.hash(&mut hasher);
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_the_line_where_it_was_first_seen() {
        let mut ids = Ids::default();
        assert_eq!(ids.insert(Id::of("a"), 3), Ok(()));
        assert_eq!(ids.insert(Id::of("a"), 7), Err(3));
        assert_eq!((ids.line(Id::of("a")), ids.line(Id::of("b"))), (Some(3), None));
    }

    #[test]
    fn a_hundred_thousand_ids_of_any_length_stay_apart_in_six_megabytes() {
        let mut ids = Ids::default();
        let tail = "x".repeat(200);
        for number in 0..100_000 {
            assert_eq!(ids.insert(Id::of(&format!("{number}{tail}")), number), Ok(()));
        }
        assert_eq!(ids.len(), 100_000);
        assert!(ids.memory() < 6_000_000, "{} bytes", ids.memory());
    }
}
