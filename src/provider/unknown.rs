use std::fmt;

use super::Profile;

/// No provider has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownProvider {
    /// What was given.
    pub name: String,
    /// The known name that it is most like, if it is like one.
    pub similar: Option<&'static str>,
    /// The names that are known, custom ones first.
    pub known: Vec<&'static str>,
}

impl UnknownProvider {
    pub(super) fn new<'a>(name: &str, known: impl Iterator<Item = &'a Profile>) -> Self {
        let known: Vec<_> = known.map(Profile::name).collect();
        let lower = name.to_ascii_lowercase();
        let likeness = |known: &'static str| {
            (strsim::jaro_winkler(&lower, &known.to_ascii_lowercase()), known)
        };
        let similar = known.iter().copied().map(likeness).max_by(|a, b| a.0.total_cmp(&b.0));
        let similar = similar.filter(|(likeness, _)| *likeness > LIKE).map(|(_, known)| known);
        Self { name: name.to_owned(), similar, known }
    }
}

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such provider: `{}`; ", self.name.escape_debug())?;
        if let Some(similar) = self.similar {
            write!(f, "did you mean `{similar}`? ")?;
        }
        write!(f, "known are {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownProvider {}

/// From here on a name is a slip of another's: 1 is the same, `claude` to `cohere` is 0.74.
const LIKE: f64 = 0.8;
