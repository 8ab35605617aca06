#[cfg(feature = "regex")]
use crate::quota::Key;
#[cfg(feature = "regex")]
use regex::Regex;

/// The prefix of the names of quotas for keys that a regular expression matches.
pub(crate) const REGEX: &str = "regex:";

/// The name of a quota for all keys that a regular expression matches.
#[cfg(feature = "regex")]
pub(crate) fn regex_name(regex: &Regex) -> Key {
    format!("{REGEX}{}", regex.as_str()).into()
}
