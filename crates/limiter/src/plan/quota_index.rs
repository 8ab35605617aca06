use std::collections::{BTreeSet, HashMap};

use crate::quota::Key;
use wildmatch::WildMatch;

use super::key_regex::KeyRegex;
use super::pattern::Pattern;

/// Entries by exact name, by globs from the most specific to the least, and by regular expressions in the
/// order in which they were added.
#[derive(Debug)]
pub(crate) struct QuotaIndex<T> {
    exact: HashMap<Key, T>,
    /// The exact names that have capitals, each after itself in lower case.
    spelled: BTreeSet<(Key, Key)>,
    globs: Vec<(WildMatch, T)>,
    regexes: Vec<(KeyRegex, T)>,
}

impl<T> Default for QuotaIndex<T> {
    fn default() -> Self {
        let (exact, spelled) = (HashMap::new(), BTreeSet::new());
        Self { exact, spelled, globs: Vec::new(), regexes: Vec::new() }
    }
}

impl<T> QuotaIndex<T> {
    pub(crate) fn insert(&mut self, name: &str, entry: T) {
        match Pattern::of(name) {
            Pattern::Exact(name) => {
                self.spelled.extend(lower(&name).map(|lower| (lower, name.clone())));
                self.exact.insert(name, entry);
            }
            Pattern::Glob(glob) => {
                self.globs.retain(|(other, _)| *other != glob);
                let before = |(other, _): &(WildMatch, T)| specificity(other) >= specificity(&glob);
                self.globs.insert(self.globs.partition_point(before), (glob, entry));
            }
            Pattern::Regex(regex) => {
                match self.regexes.iter_mut().find(|(other, _)| other.name() == regex.name()) {
                    Some((_, old)) => *old = entry,
                    None => self.regexes.push((regex, entry)),
                }
            }
        }
    }

    /// Removes and returns the entries with an exact name that fulfil a condition.
    pub(crate) fn take_exact(&mut self, is_taken: impl Fn(&T) -> bool) -> HashMap<Key, T> {
        let taken: HashMap<_, _> = self.exact.extract_if(|_, entry| is_taken(entry)).collect();
        self.spelled.retain(|(_, name)| !taken.contains_key(name));
        taken
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.globs.len() + self.regexes.len();
        match Pattern::of(name) {
            Pattern::Exact(name) => {
                if let Some(lower) = lower(&name) {
                    self.spelled.remove(&(lower, name.clone()));
                }
                return self.exact.remove(&name).is_some();
            }
            Pattern::Glob(removed) => self.globs.retain(|(glob, _)| *glob != removed),
            Pattern::Regex(removed) => {
                self.regexes.retain(|(other, _)| other.name() != removed.name());
            }
        }
        self.globs.len() + self.regexes.len() < before
    }

    /// Returns the entry with exactly this name: a shared quota has its pattern as its name.
    pub(crate) fn named(&self, name: &str) -> Option<&T> {
        if let Some(entry) = self.exact.get(name) {
            return Some(entry);
        }
        // Doesn't parse the pattern, since every new key passes here.
        let by_regex = || self.regexes.iter().find(|(regex, _)| regex.name() == name);
        match Pattern::is_one(name) {
            true => by_regex().map(|(_, entry)| entry).or_else(|| {
                let glob = WildMatch::new(name);
                self.globs.iter().find(|(other, _)| *other == glob).map(|(_, entry)| entry)
            }),
            false => None,
        }
    }

    /// Returns the entry that covers a key.
    pub(crate) fn find(&self, key: &str) -> Option<&T> {
        let glob = || self.globs.iter().find(|(glob, _)| glob.matches(key)).map(|(_, entry)| entry);
        let regex =
            || self.regexes.iter().find(|(regex, _)| regex.matches(key)).map(|(_, entry)| entry);
        self.named(key).or_else(glob).or_else(regex)
    }

    /// Returns the exact names that are one of these names in lower case.
    pub(super) fn spelled<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = &'a Key> {
        names.iter().flat_map(|name| {
            let own = self.exact.get_key_value(name.as_str()).map(|(own, _)| own);
            let from = (Key::from(name.as_str()), Key::default());
            let spelled = self.spelled.range(from..).take_while(move |(lower, _)| *lower == *name);
            own.into_iter().chain(spelled.map(|(_, own)| own))
        })
    }

    /// Returns a name as a pattern covers it that covers it but for its case.
    pub(super) fn spelled_by_pattern(&self, name: &str) -> Option<String> {
        let by_glob = self.globs.iter().find_map(|(glob, _)| {
            let glob = glob.to_string();
            let (start, end) = (glob.find(WILDCARDS)?, glob.rfind(WILDCARDS)? + 1);
            let (start, end) = (&glob[..start], &glob[end..]);
            let middle = name.get(start.len()..name.len().checked_sub(end.len())?)?;
            let spelled = format!("{start}{middle}{end}");
            let is_same = spelled.eq_ignore_ascii_case(name);
            (is_same && WildMatch::new(&glob).matches(&spelled)).then_some(spelled)
        });
        let by_regex = || self.regexes.iter().any(|(regex, _)| regex.matches(name));
        by_glob.or_else(|| by_regex().then(|| name.to_owned()))
    }

    pub(crate) fn len(&self) -> usize {
        self.exact.len() + self.globs.len() + self.regexes.len()
    }

    /// Returns the names that aren't patterns.
    pub(crate) fn exact(&self) -> impl Iterator<Item = &Key> {
        self.exact.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let globs = self.globs.iter().map(|(_, entry)| entry);
        let regexes = self.regexes.iter().map(|(_, entry)| entry);
        self.exact.values().chain(globs).chain(regexes)
    }

    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let globs = self.globs.iter_mut().map(|(_, entry)| entry);
        let regexes = self.regexes.iter_mut().map(|(_, entry)| entry);
        self.exact.values_mut().chain(globs).chain(regexes)
    }
}

/// Returns the number of literal characters of a glob: the more, the more specific.
fn specificity(glob: &WildMatch) -> usize {
    glob.to_string().chars().filter(|c| !WILDCARDS.contains(c)).count()
}

/// Returns a name in lower case, if it has capitals.
fn lower(name: &str) -> Option<Key> {
    let has_capitals = name.bytes().any(|byte| byte.is_ascii_uppercase());
    has_capitals.then(|| name.to_ascii_lowercase().into())
}

const WILDCARDS: [char; 2] = ['*', '?'];
