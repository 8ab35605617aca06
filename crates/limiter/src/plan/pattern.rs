use crate::quota::Key;
use wildmatch::WildMatch;

use super::key_regex::KeyRegex;
use super::regex_name::REGEX;

/// The keys that the name of a quota covers.
#[derive(Debug)]
pub(crate) enum Pattern {
    Exact(Key),
    Glob(WildMatch),
    Regex(KeyRegex),
}

impl Pattern {
    /// Parses `regex:` and a regular expression, a glob, or a key. An invalid regular expression is a
    /// key.
    pub(crate) fn of(name: &str) -> Self {
        if let Some(regex) = name.strip_prefix(REGEX).and_then(KeyRegex::of) {
            return Self::Regex(regex);
        }
        match name.contains(['*', '?']) && !name.starts_with(REGEX) {
            true => Self::Glob(WildMatch::new(name)),
            false => Self::Exact(name.into()),
        }
    }

    /// Returns `true` if a quota of this name may cover more than one key.
    pub(crate) fn is_one(name: &str) -> bool {
        name.contains(['*', '?']) || name.starts_with(REGEX)
    }

    /// Returns `true` if it covers the key.
    pub(crate) fn covers(&self, key: &str) -> bool {
        match self {
            Self::Exact(name) => name == key,
            Self::Glob(glob) => glob.matches(key),
            Self::Regex(regex) => regex.matches(key),
        }
    }

    /// Returns the key of the buckets that all covered keys share.
    pub(crate) fn name(&self) -> Key {
        match self {
            Self::Exact(name) => name.clone(),
            Self::Glob(glob) => glob.to_string().into(),
            Self::Regex(regex) => regex.name().clone(),
        }
    }
}
