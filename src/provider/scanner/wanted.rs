use super::field::{ERRORS, Field};
use super::key::Key;

/// All the fields that are looked for: the profile's counts, then the parts of errors.
#[derive(Clone, Copy)]
pub(super) struct Wanted(&'static [Field]);

impl Wanted {
    pub(super) fn new(counts: &'static [Field]) -> Self {
        debug_assert!(counts.len() + ERRORS.len() < u64::BITS as usize);
        Self(counts)
    }

    pub(super) fn all(self) -> Set {
        Set((1 << (self.0.len() + ERRORS.len())) - 1)
    }

    /// Those of the fields in an object at this depth (1 is the root) that have this key.
    pub(super) fn with_key(self, fields: Set, depth: usize, key: &Key) -> Set {
        let Some(key) = key.text() else { return Set::EMPTY };
        self.only(fields, |f| f.path.get(depth - 1).is_some_and(|k| k.as_bytes() == key))
    }

    /// Those that lie deeper than a value in an object at this depth.
    pub(super) fn deeper(self, fields: Set, depth: usize) -> Set {
        self.only(fields, |field| field.path.len() > depth)
    }

    /// Those that a value in an object at this depth is.
    pub(super) fn ending(self, fields: Set, depth: usize) -> impl Iterator<Item = &'static Field> {
        fields.map(move |place| self.at(place)).filter(move |field| field.path.len() == depth)
    }

    fn only(self, fields: Set, keep: impl Fn(&Field) -> bool) -> Set {
        Set(fields.filter(|at| keep(self.at(*at))).fold(0, |kept, at| kept | 1 << at))
    }

    fn at(self, place: u32) -> &'static Field {
        let place = place as usize;
        self.0.get(place).unwrap_or_else(|| &ERRORS[place - self.0.len()])
    }
}

/// A set of fields, as bits of their places; iterating takes them out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Set(u64);

impl Set {
    pub(super) const EMPTY: Self = Self(0);

    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

impl Iterator for Set {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let place = (self.0 != 0).then(|| self.0.trailing_zeros())?;
        self.0 &= self.0 - 1;
        Some(place)
    }
}
