use std::sync::OnceLock;

use aho_corasick::packed::{Config, MatchKind, Searcher};

use super::fields::Fields;
use super::known_fields::KNOWN;
use super::response_field::{FieldValue, ResponseField};

/// The fields of a profile, and a search for the events of a stream that may have one.
pub(crate) struct FieldTable {
    fields: Fields,
    /// Built when a stream is first read. `None` on a processor without vector instructions.
    searcher: OnceLock<Option<Searcher>>,
}

/// Texts of which every object with a field contains at least one: the ends of the last key of each
/// field, `"error"`, and ends of streams; MiniMax's `base_resp` aside, an error that comes alone. Most events of a stream contain none, and are skipped at memory speed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needles(Option<&'static Searcher>);

impl FieldTable {
    /// Returns a table of fields that [`check`](super::response_field::check) accepts.
    ///
    /// # Panics
    /// If it doesn't.
    pub(crate) const fn new(counts: &'static [ResponseField]) -> Self {
        Self { fields: Fields::new(counts), searcher: OnceLock::new() }
    }

    pub(super) fn fields(&'static self) -> &'static Fields {
        &self.fields
    }

    pub(super) fn needles(&'static self) -> Needles {
        let build = || {
            let needles = needles(self.fields.counts());
            Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(needles).build()
        };
        Needles(self.searcher.get_or_init(build).as_ref())
    }
}

impl Needles {
    /// Returns the number of bytes before the first needle.
    pub(super) fn bytes_before(&self, bytes: &[u8]) -> usize {
        match self.0 {
            None => 0,
            Some(searcher) => searcher.find(bytes).map_or(bytes.len(), |found| found.start()),
        }
    }
}

fn needles(fields: &[ResponseField]) -> Vec<String> {
    let mut needles = vec![ERROR.to_owned()];
    needles.extend(ENDS.iter().chain(ESCAPED).map(|&text| text.to_owned()));
    for field in fields.iter().filter(|field| field.value != FieldValue::End) {
        let key = field.path.last().copied().unwrap_or_default();
        let end = format!("{}\"", tail(key));
        if !needles.contains(&end) {
            needles.push(end);
        }
    }
    needles
}

/// Returns the last [`TAIL`] bytes of a key, cut between characters.
fn tail(key: &str) -> &str {
    let start = key.len().saturating_sub(TAIL);
    let start = (start..=key.len()).find(|&at| key.is_char_boundary(at));
    &key[start.unwrap_or(0)..]
}

/// The fields of all known formats.
pub(super) static KNOWN_FIELDS: FieldTable = FieldTable::new(KNOWN);

/// The number of last bytes of a key that are searched for: few enough that many keys share them, since
/// few needles are found faster, and enough that plain text hardly ever contains them.
const TAIL: usize = 7;

/// The key of an error, or the value of a `type` or `object` at the root of an error: see
/// `ErrorParts`.
const ERROR: &str = "\"error\"";

/// The event that ends a stream in OpenAI's format, and the type of the one that ends Anthropic's. Other last
/// events have a count.
const ENDS: &[&str] = &["[DONE]", "e_stop\""];

/// The value could be written with escapes of letters or of `_`.
const ESCAPED: &[&str] = &["\\u005", "\\u006", "\\u007"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scanner::response_field::{ERRORS, ErrorPart};

    #[test]
    fn errors_outside_the_root_have_a_needle() {
        for field in ERRORS {
            let is_at_root = matches!(
                field.value,
                FieldValue::Text(
                    ErrorPart::RootCode
                        | ErrorPart::RootKind
                        | ErrorPart::RootMessage
                        | ErrorPart::RootObject
                )
            );
            assert!(
                is_at_root || (field.path.contains(&"error") || field.path[0] == "base_resp"),
                "{field:?}"
            );
        }
    }

    #[test]
    fn needles_of_known_fields_are_few_and_long() {
        let needles = needles(KNOWN);
        assert!(needles.len() <= 17, "{needles:?}");
        assert!(needles.iter().all(|needle| needle.len() >= 5), "{needles:?}");
    }
}
