use std::collections::HashSet;
use std::sync::Arc;

use ::metrics::SharedString;
use parking_lot::RwLock;

/// The distinct values of a label, up to a maximum. Further values become `other`.
#[derive(Debug)]
pub(super) struct LabelSet {
    max: usize,
    known: RwLock<HashSet<Arc<str>>>,
}

impl LabelSet {
    pub(super) fn new(max: usize) -> Self {
        Self { max, known: RwLock::new(HashSet::new()) }
    }

    pub(super) fn of(&self, value: &str) -> SharedString {
        let known = self.known.read();
        if let Some(known) = known.get(value) {
            return Arc::clone(known).into();
        }
        // Values are never removed, so a full set stays full.
        if value.len() > MAX_LENGTH || known.len() >= self.max {
            return OTHER;
        }
        drop(known);
        self.add(value)
    }

    #[cold]
    fn add(&self, value: &str) -> SharedString {
        let mut known = self.known.write();
        if known.len() >= self.max && !known.contains(value) {
            return OTHER;
        }
        let value: Arc<str> = value.into();
        known.insert(Arc::clone(&value));
        value.into()
    }
}

/// The label of values above the maximum.
pub(super) const OTHER: SharedString = SharedString::const_str("other");

/// The length of the longest value, in bytes. Longer values become `other`.
const MAX_LENGTH: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_above_maximum_become_other() {
        let labels = LabelSet::new(2);
        let values: Vec<_> = ["a", "b", "c", "a", "d", "b"].map(|value| labels.of(value)).into();
        assert_eq!(values, ["a", "b", "other", "a", "other", "b"].map(SharedString::const_str));
    }

    #[test]
    fn long_value_becomes_other() {
        assert_eq!(LabelSet::new(2).of(&"x".repeat(MAX_LENGTH + 1)), OTHER);
    }
}
