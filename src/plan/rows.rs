use std::collections::HashMap;

use crate::quota::Key;
use wildmatch::WildMatch;

use super::pattern::Pattern;
use super::whole::Whole;

/// Rows by exact name, globs from the most specific to the least, and regular expressions in the
/// order in which they came.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    exact: HashMap<Key, T>,
    globs: Vec<(WildMatch, T)>,
    regexes: Vec<(Whole, T)>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), globs: Vec::new(), regexes: Vec::new() }
    }
}

impl<T> Rows<T> {
    pub(crate) fn insert(&mut self, name: &str, row: T) {
        match Pattern::of(name) {
            Pattern::Exact(name) => {
                self.exact.insert(name, row);
            }
            Pattern::Glob(glob) => {
                self.globs.retain(|(other, _)| *other != glob);
                let before = |(other, _): &(WildMatch, T)| specificity(other) >= specificity(&glob);
                self.globs.insert(self.globs.partition_point(before), (glob, row));
            }
            Pattern::Regex(whole) => {
                match self.regexes.iter_mut().find(|(other, _)| other.name() == whole.name()) {
                    Some((_, old)) => *old = row,
                    None => self.regexes.push((whole, row)),
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.globs.len() + self.regexes.len();
        match Pattern::of(name) {
            Pattern::Exact(name) => return self.exact.remove(&name).is_some(),
            Pattern::Glob(removed) => self.globs.retain(|(glob, _)| *glob != removed),
            Pattern::Regex(removed) => {
                self.regexes.retain(|(other, _)| other.name() != removed.name());
            }
        }
        self.globs.len() + self.regexes.len() < before
    }

    /// The row of this very name: patterns are the names of what is shared under them.
    pub(crate) fn named(&self, name: &str) -> Option<&T> {
        if let Some(row) = self.exact.get(name) {
            return Some(row);
        }
        // Without reading the pattern: this is on the way of every new key.
        let regex = || self.regexes.iter().find(|(whole, _)| whole.name() == name);
        match Pattern::is_one(name) {
            true => regex().map(|(_, row)| row).or_else(|| {
                let glob = WildMatch::new(name);
                self.globs.iter().find(|(other, _)| *other == glob).map(|(_, row)| row)
            }),
            false => None,
        }
    }

    /// The row that a key goes by.
    pub(crate) fn find(&self, key: &str) -> Option<&T> {
        let glob = || self.globs.iter().find(|(glob, _)| glob.matches(key)).map(|(_, row)| row);
        let regex =
            || self.regexes.iter().find(|(whole, _)| whole.matches(key)).map(|(_, row)| row);
        self.named(key).or_else(glob).or_else(regex)
    }

    pub(crate) fn len(&self) -> usize {
        self.exact.len() + self.globs.len() + self.regexes.len()
    }

    /// The names that are no patterns.
    pub(crate) fn exact(&self) -> impl Iterator<Item = &Key> {
        self.exact.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, &T)> {
        let exact = self.exact.iter().map(|(name, row)| (name.to_string(), row));
        let globs = self.globs.iter().map(|(glob, row)| (glob.to_string(), row));
        let regexes = self.regexes.iter().map(|(whole, row)| (whole.name().to_string(), row));
        exact.chain(globs).chain(regexes)
    }
}

/// The number of characters that a glob names: the more, the more specific.
fn specificity(glob: &WildMatch) -> usize {
    glob.to_string().chars().filter(|c| !matches!(c, '*' | '?')).count()
}
