use std::sync::LazyLock;

use aho_corasick::packed::{Config, MatchKind, Searcher};

use super::wanted::Wanted;
use crate::provider::Profile;

/// The texts without one of which a JSON object states nothing: the last key of each count, and
/// `"error"`. Hundreds of events of a stream have none, and are passed over at the speed of memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needles(Option<&'static Searcher>);

impl Needles {
    /// Those of a built-in profile.
    pub(super) fn of(profile: Profile) -> Self {
        let searcher = SEARCHERS.iter().find(|(of, _)| *of == profile);
        Self(searcher.and_then(|(_, searcher)| searcher.as_ref()))
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
static SEARCHERS: LazyLock<Vec<(Profile, Option<Searcher>)>> =
    LazyLock::new(|| Profile::all().iter().map(|p| (*p, searcher(p.wanted()))).collect());

fn searcher(wanted: &Wanted) -> Option<Searcher> {
    let mut needles = vec![ERROR.to_owned()];
    needles.extend(ESCAPED.iter().map(|&escape| escape.to_owned()));
    for field in wanted.counts() {
        let key = field.path.last().map_or(String::new(), |key| format!("\"{key}\""));
        if !needles.contains(&key) {
            needles.push(key);
        }
    }
    Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(&needles).build()
}

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
    fn profiles_are_told_apart_by_their_names() {
        let mut names: Vec<_> = Profile::all().iter().map(Profile::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Profile::all().len());
    }
}
