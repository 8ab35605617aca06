use std::fmt;

/// The error of a provider name that neither a built-in nor a given profile has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownProvider {
    /// The given name.
    pub name: String,
    /// The known name that is most similar, if any is similar.
    pub similar: Option<&'static str>,
    /// The known names, custom ones first.
    pub known: Vec<&'static str>,
}

impl UnknownProvider {
    pub(super) fn new(name: &str, known: impl Iterator<Item = &'static str>) -> Self {
        let known: Vec<_> = known.collect();
        let lower = name.to_ascii_lowercase();
        let similarity = |known: &'static str| {
            (strsim::jaro_winkler(&lower, &known.to_ascii_lowercase()), known)
        };
        let similar = known.iter().copied().map(similarity).max_by(|a, b| a.0.total_cmp(&b.0));
        let similar =
            similar.filter(|(similarity, _)| *similarity > MIN_SIMILARITY).map(|(_, known)| known);
        Self { name: name.to_owned(), similar, known }
    }
}

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown provider `{}`; ", self.name.escape_debug())?;
        if let Some(similar) = self.similar {
            write!(f, "did you mean `{similar}`? ")?;
        }
        write!(f, "known providers: {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownProvider {}

/// The Jaro-Winkler similarity above which a name is suggested: 1 is equal, `claude` and `cohere` have
/// 0.74.
const MIN_SIMILARITY: f64 = 0.8;
