use crate::quota::Key;
use wildmatch::WildMatch;

use super::regex_name::REGEX;
use super::whole::Whole;

/// The keys of a quota, by its name.
#[derive(Debug)]
pub(crate) enum Pattern {
    Exact(Key),
    Glob(WildMatch),
    Regex(Whole),
}

impl Pattern {
    /// `regex:` and a regular expression, a glob, or the key itself. What reads as a regular
    /// expression and is none is a key.
    pub(crate) fn of(name: &str) -> Self {
        if let Some(whole) = name.strip_prefix(REGEX).and_then(Whole::of) {
            return Self::Regex(whole);
        }
        match name.contains(['*', '?']) && !name.starts_with(REGEX) {
            true => Self::Glob(WildMatch::new(name)),
            false => Self::Exact(name.into()),
        }
    }

    /// Returns whether a quota of this name may be for more than one key.
    pub(crate) fn is_one(name: &str) -> bool {
        name.contains(['*', '?']) || name.starts_with(REGEX)
    }

    /// The key of the buckets of all keys that it is for, where they share them.
    pub(crate) fn name(&self) -> Key {
        match self {
            Self::Exact(name) => name.clone(),
            Self::Glob(glob) => glob.to_string().into(),
            Self::Regex(whole) => whole.name().clone(),
        }
    }
}
