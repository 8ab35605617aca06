//! A compact set of `custom_id`s.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// A `custom_id` as a 128-bit hash.
///
/// The chance of a collision among a million ids is about 10⁻²⁷. The hash may differ between
/// builds: it is valid for one run and never read from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(u64, u64);

impl Id {
    /// Returns the hash of a `custom_id`.
    pub fn of(custom_id: &str) -> Self {
        Self(half(0, custom_id), half(1, custom_id))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

/// A map from ids to the lines where they first occur.
///
/// Takes 25 bytes per slot and at most about 58 bytes per id, however long the ids are.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    lines: HashMap<Id, u64, FixedState>,
}

impl Ids {
    /// Inserts an id with its line number.
    ///
    /// # Errors
    /// Returns the line number of the first occurrence if the id exists.
    pub fn insert(&mut self, id: Id, number: u64) -> Result<(), u64> {
        match self.lines.entry(id) {
            Entry::Occupied(first) => Err(*first.get()),
            Entry::Vacant(slot) => {
                slot.insert(number);
                Ok(())
            }
        }
    }

    /// Returns the line where an id first occurs.
    pub fn line(&self, id: Id) -> Option<u64> {
        self.lines.get(&id).copied()
    }

    /// Returns true if the id exists.
    pub fn contains(&self, id: Id) -> bool {
        self.lines.contains_key(&id)
    }

    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if there are no ids.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the allocated memory in bytes.
    pub fn memory(&self) -> usize {
        self.lines.allocation_size()
    }
}

fn half(index: u8, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    index.hash(&mut hasher);
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_keeps_first_line() {
        let mut ids = Ids::default();
        assert_eq!(ids.insert(Id::of("a"), 3), Ok(()));
        assert_eq!(ids.insert(Id::of("a"), 7), Err(3));
        assert_eq!((ids.line(Id::of("a")), ids.line(Id::of("b"))), (Some(3), None));
    }

    #[test]
    fn hundred_thousand_ids_fit_six_megabytes() {
        let mut ids = Ids::default();
        let tail = "x".repeat(200);
        for number in 0..100_000 {
            assert_eq!(ids.insert(Id::of(&format!("{number}{tail}")), number), Ok(()));
        }
        assert_eq!(ids.len(), 100_000);
        assert!(ids.memory() < 6_000_000, "{} bytes", ids.memory());
    }
}
