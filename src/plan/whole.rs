use crate::quota::Key;
use regex::Regex;

use super::regex_name::regex_name;

/// A regular expression that whole keys are to match.
#[derive(Debug)]
pub(crate) struct Whole {
    name: Key,
    regex: Regex,
}

impl Whole {
    /// The one of this pattern, if it is a regular expression.
    pub(crate) fn of(pattern: &str) -> Option<Self> {
        let regex = Regex::new(pattern).ok()?;
        // A pattern that may hold comments ends in one if it has no line of its own.
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
