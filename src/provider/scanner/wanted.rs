use smallvec::SmallVec;

use super::field::{ERRORS, Field};
use super::key::LONGEST_KEY;
use super::lexer::DEEPEST;

/// All the fields that are looked for: the profile's counts, then the parts of errors.
pub(super) struct Wanted {
    counts: &'static [Field],
    /// The keys of a root object, which are looked up in every frame, and their fields.
    roots: SmallVec<[(&'static str, Set); 12]>,
    /// A bit for each wanted key: most keys are none, and are told by it at once.
    sieve: u64,
}

impl Wanted {
    pub(super) fn new(counts: &'static [Field]) -> Self {
        debug_assert!(counts.len() + ERRORS.len() < u64::BITS as usize);
        let mut wanted = Self { counts, roots: SmallVec::new(), sieve: 0 };
        for place in wanted.all() {
            wanted.add(place, wanted.at(place).path);
        }
        wanted
    }

    fn add(&mut self, place: u32, path: &'static [&'static str]) {
        debug_assert!(path.len() < DEEPEST, "{path:?}");
        for key in path {
            debug_assert!(key.len() <= LONGEST_KEY, "{key}");
            self.sieve |= sieve_bit(key.as_bytes());
        }
        let Some(root) = path.first() else { return };
        match self.roots.iter_mut().find(|(key, _)| key == root) {
            Some((_, fields)) => fields.0 |= 1 << place,
            None => self.roots.push((root, Set(1 << place))),
        }
    }

    pub(super) fn all(&self) -> Set {
        Set((1 << (self.counts.len() + ERRORS.len())) - 1)
    }

    /// Those of the fields in an object at this depth (1 is the root) that have this key.
    pub(super) fn with_key(&self, fields: Set, depth: usize, key: &[u8]) -> Set {
        if self.sieve & sieve_bit(key) == 0 {
            return Set::EMPTY;
        }
        if depth == 1 {
            let root = self.roots.iter().find(|(root, _)| root.as_bytes() == key);
            return root.map_or(Set::EMPTY, |(_, fields)| *fields);
        }
        self.only(fields, |f| f.path.get(depth - 1).is_some_and(|k| k.as_bytes() == key))
    }

    /// Those that lie deeper than a value in an object at this depth.
    pub(super) fn deeper(&self, fields: Set, depth: usize) -> Set {
        self.only(fields, |field| field.path.len() > depth)
    }

    /// Those that a value in an object at this depth is.
    pub(super) fn ending(&self, fields: Set, depth: usize) -> impl Iterator<Item = &'static Field> {
        fields.map(move |place| self.at(place)).filter(move |field| field.path.len() == depth)
    }

    fn only(&self, fields: Set, keep: impl Fn(&Field) -> bool) -> Set {
        Set(fields.filter(|at| keep(self.at(*at))).fold(0, |kept, at| kept | 1 << at))
    }

    fn at(&self, place: u32) -> &'static Field {
        let place = place as usize;
        self.counts.get(place).unwrap_or_else(|| &ERRORS[place - self.counts.len()])
    }
}

/// One of 64 bits, by the length and the last byte.
fn sieve_bit(key: &[u8]) -> u64 {
    let last = key.last().copied().unwrap_or(0);
    1 << ((key.len() + 7 * usize::from(last)) % 64)
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
