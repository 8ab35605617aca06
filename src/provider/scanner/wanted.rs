use super::field::{ERRORS, Field};
use super::key::LONGEST_KEY;
use super::lexer::DEEPEST;

/// All the fields that are looked for: counts, then the parts of errors. Made once,
/// when the program is compiled.
pub(in crate::provider) struct Wanted {
    counts: &'static [Field],
    /// The keys of a root object, which are looked up in every frame, and their fields.
    roots: [(&'static str, Set); MOST_ROOTS],
    /// A bit for each wanted key: most keys are none, and are told by it at once.
    sieve: [u64; 4],
}

impl Wanted {
    pub(in crate::provider) const fn new(counts: &'static [Field]) -> Self {
        assert!(counts.len() + ERRORS.len() < u128::BITS as usize, "more fields than bits");
        let mut wanted = Self { counts, roots: [("", Set::EMPTY); MOST_ROOTS], sieve: [0; 4] };
        let mut place = 0;
        while place < counts.len() + ERRORS.len() {
            wanted.add(place, wanted.at(place as u32).path);
            place += 1;
        }
        wanted
    }

    const fn add(&mut self, place: usize, path: &'static [&'static str]) {
        assert!(!path.is_empty() && path.len() < DEEPEST, "no path, or one too deep");
        let mut depth = 0;
        while depth < path.len() {
            let key = path[depth].as_bytes();
            assert!(!key.is_empty() && key.len() <= LONGEST_KEY, "no key, or one too long");
            let (word, bit) = sieve_bit(key);
            self.sieve[word] |= bit;
            depth += 1;
        }
        let mut root = 0;
        // Fails to compile where there are more roots than room.
        while !self.roots[root].0.is_empty() && !is_same(self.roots[root].0, path[0]) {
            root += 1;
        }
        self.roots[root].0 = path[0];
        self.roots[root].1.0 |= 1 << place;
    }

    /// The counts.
    pub(super) const fn counts(&self) -> &'static [Field] {
        self.counts
    }

    pub(super) const fn all(&self) -> Set {
        Set((1 << (self.counts.len() + ERRORS.len())) - 1)
    }

    /// Those of the fields in an object at this depth (1 is the root) that have this key.
    pub(super) fn with_key(&self, fields: Set, depth: usize, key: &[u8]) -> Set {
        let (word, bit) = sieve_bit(key);
        if self.sieve[word] & bit == 0 {
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

    const fn at(&self, place: u32) -> &'static Field {
        let place = place as usize;
        match place.checked_sub(self.counts.len()) {
            Some(place) => &ERRORS[place],
            None => &self.counts[place],
        }
    }
}

/// One of 256 bits, as a word and a bit in it: by the length, the first and the last byte.
const fn sieve_bit(key: &[u8]) -> (usize, u64) {
    let (first, last) = match key {
        [] => (0, 0),
        [only] => (*only, *only),
        [first, .., last] => (*first, *last),
    };
    let place = key.len() + 7 * last as usize + 31 * first as usize;
    (place / 64 % 4, 1 << (place % 64))
}

/// `==`, which constants don't have for texts.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// A set of fields, as bits of their places; iterating takes them out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Set(u128);

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

/// Different keys at the root, those of errors included.
const MOST_ROOTS: usize = 32;
