use std::collections::HashSet;
use std::sync::Arc;

use ::metrics::SharedString;
use parking_lot::RwLock;

/// The values of a label: so many at most, whatever passes. All others are `other`.
#[derive(Debug)]
pub(super) struct Labels {
    most: usize,
    known: RwLock<HashSet<Arc<str>>>,
}

impl Labels {
    pub(super) fn new(most: usize) -> Self {
        Self { most, known: RwLock::new(HashSet::new()) }
    }

    pub(super) fn of(&self, value: &str) -> SharedString {
        let known = self.known.read();
        if let Some(known) = known.get(value) {
            return Arc::clone(known).into();
        }
        // None is ever forgotten, so a full set stays full.
        if value.len() > LONGEST || known.len() >= self.most {
            return OTHER;
        }
        drop(known);
        self.add(value)
    }

    #[cold]
    fn add(&self, value: &str) -> SharedString {
        let mut known = self.known.write();
        if known.len() >= self.most && !known.contains(value) {
            return OTHER;
        }
        let value: Arc<str> = value.into();
        known.insert(Arc::clone(&value));
        value.into()
    }
}

/// What is none of the values that are told apart.
pub(super) const OTHER: SharedString = SharedString::const_str("other");

/// Longer values are names of nothing, in bytes.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_past_the_bound_are_other_and_those_before_it_stay() {
        let labels = Labels::new(2);
        let told: Vec<_> = ["a", "b", "c", "a", "d", "b"].map(|value| labels.of(value)).into();
        assert_eq!(told, ["a", "b", "other", "a", "other", "b"].map(SharedString::const_str));
    }

    #[test]
    fn a_value_as_long_as_a_prompt_is_no_label() {
        assert_eq!(Labels::new(2).of(&"x".repeat(LONGEST + 1)), OTHER);
    }
}
