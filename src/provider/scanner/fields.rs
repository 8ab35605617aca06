use super::response_field::{ERRORS, FieldValue, MAX_DEPTH, MAX_KEY, ResponseField};

/// The fields that a lexer looks for: counts, then parts of errors.
pub(super) struct Fields {
    counts: &'static [ResponseField],
    /// The keys of a root object, which are looked up in every frame, and their fields.
    roots: [(&'static str, Set); MAX_ROOTS],
    /// The fields that are objects, those that state the end of a stream, and those that are looked for in lists.
    objects: Set,
    ends: Set,
    listed: Set,
    /// The fields with a path of each length.
    at_depth: [Set; MAX_DEPTH],
    /// The fields with a path longer than each length.
    below: [Set; MAX_DEPTH],
    /// A bit for each key that is looked for, by which most other keys are excluded quickly.
    sieve: [u64; 4],
}

impl Fields {
    pub(super) const fn new(counts: &'static [ResponseField]) -> Self {
        assert!(counts.len() + ERRORS.len() < u128::BITS as usize, "more fields than bits");
        let roots = [("", Set::EMPTY); MAX_ROOTS];
        let (objects, ends, listed) = (Set::EMPTY, Set::EMPTY, Set::EMPTY);
        let (at_depth, below) = ([Set::EMPTY; MAX_DEPTH], [Set::EMPTY; MAX_DEPTH]);
        let mut fields =
            Self { counts, roots, objects, ends, listed, at_depth, below, sieve: [0; 4] };
        let mut index = 0;
        while index < counts.len() + ERRORS.len() {
            fields.add(index, fields.at(index as u32));
            index += 1;
        }
        fields
    }

    const fn add(&mut self, index: usize, field: &'static ResponseField) {
        let path = field.path;
        match field.value {
            FieldValue::Object => self.objects.0 |= 1 << index,
            FieldValue::End => {
                self.ends.0 |= 1 << index;
                self.listed.0 |= 1 << index;
            }
            FieldValue::ListedCount(_) => self.listed.0 |= 1 << index,
            _ => {}
        }
        assert!(!path.is_empty() && path.len() < MAX_DEPTH, "an empty or too deep path");
        self.at_depth[path.len()].0 |= 1 << index;
        let mut depth = 0;
        while depth < path.len() {
            self.below[depth].0 |= 1 << index;
            let key = path[depth].as_bytes();
            assert!(!key.is_empty() && key.len() <= MAX_KEY, "an empty or too long key");
            let (word, bit) = sieve_bit(key);
            self.sieve[word] |= bit;
            depth += 1;
        }
        let mut root = 0;
        // Fails to compile if there are more roots than `MAX_ROOTS`.
        while !self.roots[root].0.is_empty() && !is_same(self.roots[root].0, path[0]) {
            root += 1;
        }
        self.roots[root].0 = path[0];
        self.roots[root].1.0 |= 1 << index;
    }

    /// Returns the fields of counts.
    pub(super) const fn counts(&self) -> &'static [ResponseField] {
        self.counts
    }

    pub(super) const fn all(&self) -> Set {
        Set((1 << (self.counts.len() + ERRORS.len())) - 1)
    }

    /// Returns the fields among these that have this key in an object at this depth (1 is the root).
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

    /// Returns the fields among these that are within a value in an object at this depth.
    pub(super) fn deeper(&self, fields: Set, depth: usize) -> Set {
        self.below.get(depth).map_or(Set::EMPTY, |below| fields.and(*below))
    }

    /// Returns the fields among these that are themselves a value in an object at this depth.
    pub(super) fn ending(
        &self,
        fields: Set,
        depth: usize,
    ) -> impl Iterator<Item = &'static ResponseField> {
        self.ending_at(fields, depth).map(|index| self.at(index))
    }

    fn ending_at(&self, fields: Set, depth: usize) -> Set {
        self.at_depth.get(depth).map_or(Set::EMPTY, |at_depth| fields.and(*at_depth))
    }

    /// Returns true if a value with these fields in an object at this depth is itself an object that is a field.
    pub(super) fn has_object(&self, fields: Set, depth: usize) -> bool {
        !self.ending_at(fields.and(self.objects), depth).is_empty()
    }

    /// Returns true if a value with these fields in an object at this depth states the end of a stream.
    pub(super) fn has_end(&self, fields: Set, depth: usize) -> bool {
        !self.ending_at(fields.and(self.ends), depth).is_empty()
    }

    /// Returns true if the first element of a list with these fields is followed.
    pub(super) fn has_listed(&self, fields: Set, depth: usize) -> bool {
        let listed = fields.and(self.listed);
        listed == fields && !self.deeper(listed, depth).is_empty()
    }

    fn only(&self, fields: Set, keep: impl Fn(&ResponseField) -> bool) -> Set {
        Set(fields.filter(|at| keep(self.at(*at))).fold(0, |kept, at| kept | 1 << at))
    }

    const fn at(&self, index: u32) -> &'static ResponseField {
        let index = index as usize;
        match index.checked_sub(self.counts.len()) {
            Some(index) => &ERRORS[index],
            None => &self.counts[index],
        }
    }
}

/// Returns one of 256 bits, as a word and a bit in it, for the length, first and last byte of a key. Few of the
/// other keys that responses have share a bit with one that is looked for.
const fn sieve_bit(key: &[u8]) -> (usize, u64) {
    let (first, last) = match key {
        [] => (0, 0),
        [only] => (*only, *only),
        [first, .., last] => (*first, *last),
    };
    let bit = key.len() + 5 * last as usize + 18 * first as usize;
    (bit / 64 % 4, 1 << (bit % 64))
}

/// `==` for strings in constants.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// A set of fields, as bits of their indices. Iterating removes them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Set(u128);

impl Set {
    pub(super) const EMPTY: Self = Self(0);

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

impl Iterator for Set {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let index = (self.0 != 0).then(|| self.0.trailing_zeros())?;
        self.0 &= self.0 - 1;
        Some(index)
    }
}

/// The maximum number of different keys at the root, including those of errors.
const MAX_ROOTS: usize = 32;
