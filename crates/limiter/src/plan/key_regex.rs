use crate::quota::Key;
use regex::Regex;

use super::regex_name::regex_name;

/// A regular expression that must match a key in full.
#[derive(Debug)]
pub(crate) struct KeyRegex {
    name: Key,
    regex: Regex,
}

impl KeyRegex {
    /// Compiles a pattern; `None` if it isn't a regular expression.
    pub(crate) fn of(pattern: &str) -> Option<Self> {
        let regex = Regex::new(pattern).ok()?;
        // In verbose mode the pattern may end in a comment, which would swallow the anchor.
        let anchored = Regex::new(&format!(r"\A(?:{pattern})\z"));
        let anchored = anchored.or_else(|_| Regex::new(&format!("\\A(?:{pattern}\n)\\z")));
        Some(Self { name: regex_name(&regex), regex: anchored.unwrap_or(regex) })
    }

    pub(crate) fn name(&self) -> &Key {
        &self.name
    }

    pub(crate) fn matches(&self, key: &str) -> bool {
        self.regex.find(key).is_some_and(|found| found.range() == (0..key.len()))
    }
}
