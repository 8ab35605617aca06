use std::sync::LazyLock;

use aho_corasick::packed::{Config, MatchKind, Searcher};

use crate::provider::usage::WANTED;

/// The texts without one of which a JSON object states nothing: the ends of the last key of each
/// field, and `"error"`. Hundreds of events of a stream have none, and are passed over at the speed
/// of memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needles(Option<&'static Searcher>);

impl Needles {
    pub(super) fn new() -> Self {
        Self(SEARCHER.as_ref())
    }

    /// How many of the first of these bytes surely hold no needle.
    pub(super) fn free(&self, bytes: &[u8]) -> usize {
        match self.0 {
            None => 0,
            Some(searcher) => searcher.find(bytes).map_or(bytes.len(), |found| found.start()),
        }
    }
}

/// Made when a stream is first read. A processor without vector instructions has none.
static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(needles()).build()
});

fn needles() -> Vec<String> {
    let mut needles = vec![ERROR.to_owned()];
    needles.extend(ESCAPED.iter().map(|&escape| escape.to_owned()));
    for field in WANTED.counts() {
        let key = field.path.last().copied().unwrap_or_default();
        let end = format!("{}\"", &key[key.len().saturating_sub(END)..]);
        if !needles.contains(&end) {
            needles.push(end);
        }
    }
    needles
}

/// What of a key is searched for, in bytes: so few that most keys share their end, for few needles
/// are found fast, and so many that plain text has none of them.
const END: usize = 7;

/// Either the key of an error, or the value of a `type` or `object` at the root that calls the whole
/// an error: see `ErrorParts`.
const ERROR: &str = "\"error\"";

/// That value could be written with escapes of letters.
const ESCAPED: &[&str] = &["\\u006", "\\u007"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::scanner::field::{ERRORS, Part, Slot};

    #[test]
    fn nothing_is_wanted_that_has_no_needle() {
        for field in ERRORS {
            let Slot::Text(part) = field.slot else { panic!("an error has no count") };
            let is_at_root = matches!(
                part,
                Part::RootCode | Part::RootKind | Part::RootMessage | Part::RootObject
            );
            assert!(is_at_root || field.path.contains(&"error"), "{field:?}");
        }
    }

    #[test]
    fn needles_are_few_and_none_is_a_word() {
        let needles = needles();
        assert!(needles.len() <= 16, "{needles:?}");
        assert!(needles.iter().all(|needle| needle.len() >= 5), "{needles:?}");
    }
}
