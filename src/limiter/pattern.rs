use compact_str::{CompactString, format_compact};
use regex::Regex;
use wildmatch::WildMatch;

/// What the name of a quota says of the keys that it is for.
#[derive(Debug)]
pub(super) enum Pattern {
    Exact(CompactString),
    Glob(WildMatch),
    Regex(Whole),
}

/// A regular expression that whole keys are to match.
#[derive(Debug)]
pub(super) struct Whole {
    name: CompactString,
    regex: Regex,
}

impl Pattern {
    /// `regex:` and a regular expression, a glob, or the key itself. What reads as a regular
    /// expression and is none is a key.
    pub(super) fn of(name: &str) -> Self {
        if let Some(Ok(regex)) = name.strip_prefix(REGEX).map(Regex::new) {
            return Self::Regex(Whole::new(&regex));
        }
        match name.contains(['*', '?']) && !name.starts_with(REGEX) {
            true => Self::Glob(WildMatch::new(name)),
            false => Self::Exact(name.into()),
        }
    }

    /// Whether a quota of this name may be for more than one key.
    pub(super) fn is_one(name: &str) -> bool {
        name.contains(['*', '?']) || name.starts_with(REGEX)
    }

    /// The key of the buckets of all keys that it is for, where they share them.
    pub(super) fn name(&self) -> CompactString {
        match self {
            Self::Exact(name) => name.clone(),
            Self::Glob(glob) => glob.to_string().into(),
            Self::Regex(whole) => whole.name.clone(),
        }
    }
}

impl Whole {
    fn new(regex: &Regex) -> Self {
        let pattern = regex.as_str();
        // A pattern that may hold comments ends in one if it has no line of its own.
        let anchored = Regex::new(&format!(r"\A(?:{pattern})\z"));
        let anchored = anchored.or_else(|_| Regex::new(&format!("\\A(?:{pattern}\n)\\z")));
        Self { name: regex_name(regex), regex: anchored.unwrap_or_else(|_| regex.clone()) }
    }

    pub(super) fn name(&self) -> &CompactString {
        &self.name
    }

    pub(super) fn matches(&self, key: &str) -> bool {
        self.regex.find(key).is_some_and(|found| found.range() == (0..key.len()))
    }
}

/// The name of a quota for all keys that a regular expression matches.
pub(super) fn regex_name(regex: &Regex) -> CompactString {
    format_compact!("{REGEX}{}", regex.as_str())
}

const REGEX: &str = "regex:";
