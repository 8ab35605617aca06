use compact_str::CompactString;

use super::unreadable::UnreadableRequest;
use super::walk::Walk;

/// The model that a body or a form names, and the reason if it is ambiguous.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The last model that was named.
    pub(super) model: Option<CompactString>,
    is_text: bool,
    is_null: bool,
    ambiguity: Option<&'static str>,
    /// True if a settings object names a model.
    is_nested: bool,
}

/// One value of a field that names the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mention {
    Text(CompactString),
    Null,
    /// Not a name, for this reason.
    Other(&'static str),
}

impl Named {
    /// Adds a field that names the model.
    pub(super) fn add(&mut self, mention: Mention) {
        let ambiguity = match mention {
            Mention::Text(model) => {
                let differs = self.is_null || self.model.as_ref().is_some_and(|m| *m != model);
                (self.model, self.is_text) = (Some(model), true);
                differs.then_some(DIFFERS)
            }
            Mention::Null => {
                self.is_null = true;
                self.is_text.then_some(DIFFERS)
            }
            Mention::Other(reason) => Some(reason),
        };
        self.ambiguity = self.ambiguity.or(ambiguity);
    }

    /// Adds a field in a settings object, which is ignored.
    pub(super) fn add_nested(&mut self) {
        self.is_nested = true;
    }

    /// Refuses an ambiguous model.
    pub(super) fn check(&self) -> Result<(), UnreadableRequest> {
        let nested = (self.is_nested && !self.is_text).then_some(NESTED);
        self.ambiguity.or(nested).map_or(Ok(()), |reason| Err(UnreadableRequest::model(reason)))
    }
}

impl Mention {
    /// Reads the value of a field, without spaces and the prefix `models/` (Google).
    pub(super) fn text(text: &str) -> Self {
        let text = text.trim();
        Self::Text(text.strip_prefix("models/").unwrap_or(text).into())
    }
}

impl Walk<'_> for &mut Mention {
    fn text(self, text: &str) {
        *self = Mention::text(text);
    }

    fn null(self) {
        *self = Mention::Null;
    }
}

/// Returns true if some server may read a field of this name as the model: in any case
/// (Go's `encoding/json`), with an index after it, or up to a NUL byte.
pub(super) fn is_model(name: &[u8]) -> bool {
    let Some((start, rest)) = name.trim_ascii_start().split_at_checked(MODEL.len()) else {
        return false;
    };
    if !start.eq_ignore_ascii_case(MODEL) {
        return false;
    }
    let rest = rest.split(|byte| b"[\0".contains(byte)).next().unwrap_or(rest).trim_ascii_end();
    rest.is_empty() || rest.eq_ignore_ascii_case(b"_id")
}

const MODEL: &[u8] = b"model";

/// The reason for a model that is not a string.
pub(super) const NOT_A_STRING: &str = "not a string; give the name of a model";

const DIFFERS: &str = "given more than once, with different values (`model_id` and other cases of the \
                       letters are the same field); give it once";

const NESTED: &str = "given in a settings object (`options`, `generationConfig`, `toolConfig`), not at \
                      the root of the body; move it there";
