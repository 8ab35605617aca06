use super::response_field::{ERRORS, FieldValue, MAX_DEPTH, MAX_KEY, ResponseField};

/// The fields that a lexer looks for: counts, then parts of errors.
pub(super) struct Fields {
    counts: &'static [ResponseField],
    /// The keys that are looked for, in chains of those with the same hash.
    members: [Member; MAX_MEMBERS],
    /// The number of members.
    len: usize,
    /// The first member of each chain.
    chains: [u8; CHAINS],
    /// The fields that are objects, those that state the end of a stream, those that state an error, and those that are
    /// looked for in lists.
    objects: Set,
    ends: Set,
    errors: Set,
    listed: Set,
    /// The fields with a path of each length.
    at_depth: [Set; MAX_DEPTH],
    /// The fields with a path longer than each length.
    below: [Set; MAX_DEPTH],
}

/// A key in objects at one depth (1 is the root), with the fields in whose paths it is.
#[derive(Clone, Copy)]
struct Member {
    key: &'static str,
    depth: usize,
    fields: Set,
    /// The next member of the chain.
    next: u8,
}

impl Fields {
    pub(super) const fn new(counts: &'static [ResponseField]) -> Self {
        assert!(counts.len() + ERRORS.len() < u128::BITS as usize, "more fields than bits");
        let members = [Member { key: "", depth: 0, fields: Set::EMPTY, next: NONE }; MAX_MEMBERS];
        let chains = [NONE; CHAINS];
        let (objects, ends, errors, listed) = (Set::EMPTY, Set::EMPTY, Set::EMPTY, Set::EMPTY);
        let (at_depth, below) = ([Set::EMPTY; MAX_DEPTH], [Set::EMPTY; MAX_DEPTH]);
        let len = 0;
        let mut fields =
            Self { counts, members, len, chains, objects, ends, errors, listed, at_depth, below };
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
            FieldValue::Error => self.errors.0 |= 1 << index,
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
            depth += 1;
            self.add_member(path[depth - 1], depth, index);
        }
    }

    const fn add_member(&mut self, key: &'static str, depth: usize, index: usize) {
        let chain = chain(key.as_bytes(), depth);
        let mut at = self.chains[chain];
        while at != NONE {
            let member = &mut self.members[at as usize];
            if member.depth == depth && is_same(member.key, key) {
                member.fields.0 |= 1 << index;
                return;
            }
            at = member.next;
        }
        // Fails to compile if there are more members than `MAX_MEMBERS`.
        let (fields, next) = (Set(1 << index), self.chains[chain]);
        self.members[self.len] = Member { key, depth, fields, next };
        self.chains[chain] = self.len as u8;
        self.len += 1;
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
        let mut at = self.chains[chain(key, depth)];
        while let Some(member) = self.members.get(at as usize) {
            if member.depth == depth && member.key.as_bytes() == key {
                return fields.and(member.fields);
            }
            at = member.next;
        }
        Set::EMPTY
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

    /// Returns true if a value with these fields in an object at this depth states an error.
    pub(super) fn has_error(&self, fields: Set, depth: usize) -> bool {
        !self.ending_at(fields.and(self.errors), depth).is_empty()
    }

    /// Returns true if the first element of a list with these fields is followed.
    pub(super) fn has_listed(&self, fields: Set, depth: usize) -> bool {
        let listed = fields.and(self.listed);
        listed == fields && !self.deeper(listed, depth).is_empty()
    }

    const fn at(&self, index: u32) -> &'static ResponseField {
        let index = index as usize;
        match index.checked_sub(self.counts.len()) {
            Some(index) => &ERRORS[index],
            None => &self.counts[index],
        }
    }
}

/// Returns the chain of a key at a depth, by its length, first and last byte. Few of the other keys that responses have
/// share a chain with one that is looked for.
const fn chain(key: &[u8], depth: usize) -> usize {
    let (first, last) = match key {
        [] => (0, 0),
        [only] => (*only, *only),
        [first, .., last] => (*first, *last),
    };
    (key.len() + 5 * last as usize + 18 * first as usize + 59 * depth) % CHAINS
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

/// The maximum number of different keys, counted at each depth, including those of errors.
const MAX_MEMBERS: usize = 128;

const CHAINS: usize = 256;

/// The index of no member.
const NONE: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::super::known_fields::KNOWN;
    use super::*;

    #[test]
    fn key_leads_to_the_fields_that_have_it_at_its_depth() {
        static FIELDS: Fields = Fields::new(KNOWN);
        let all = || KNOWN.iter().chain(ERRORS);
        let known = all().flat_map(|field| field.path.iter().copied());
        for key in known.chain(["", "u", "usagE", "xsage", "totals"]) {
            for depth in 1..=MAX_DEPTH {
                let has_key = |field: &ResponseField| field.path.get(depth - 1) == Some(&key);
                let expected = (0..).zip(all()).filter(|(_, field)| has_key(field));
                let expected: Vec<u32> = expected.map(|(index, _)| index).collect();
                let found = FIELDS.with_key(FIELDS.all(), depth, key.as_bytes());
                assert_eq!(found.collect::<Vec<_>>(), expected, "{key} at {depth}");
            }
        }
    }
}
