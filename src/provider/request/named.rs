use compact_str::CompactString;

use super::unreadable::UnreadableRequest;
use super::walk::Walk;

/// The model that a body or a form names, and whether it names it for certain.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Of several the last.
    pub(super) model: Option<CompactString>,
    is_text: bool,
    is_null: bool,
    doubt: Option<&'static str>,
    /// Whether a settings object names one.
    is_nested: bool,
}

/// One value of a field that names the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mention {
    Text(CompactString),
    Null,
    /// No name, whatever it is.
    Other(&'static str),
}

impl Named {
    /// Takes note of one more field that names the model.
    pub(super) fn add(&mut self, mention: Mention) {
        let doubt = match mention {
            Mention::Text(model) => {
                let differs = self.is_null || self.model.as_ref().is_some_and(|m| *m != model);
                (self.model, self.is_text) = (Some(model), true);
                differs.then_some(DIFFERS)
            }
            Mention::Null => {
                self.is_null = true;
                self.is_text.then_some(DIFFERS)
            }
            Mention::Other(why) => Some(why),
        };
        self.doubt = self.doubt.or(doubt);
    }

    /// Takes note of one within a settings object, which counts for nothing.
    pub(super) fn add_nested(&mut self) {
        self.is_nested = true;
    }

    /// Refuses a model that isn't named for certain.
    pub(super) fn check(&self) -> Result<(), UnreadableRequest> {
        let nested = (self.is_nested && !self.is_text).then_some(NESTED);
        self.doubt.or(nested).map_or(Ok(()), |why| Err(UnreadableRequest::model(why)))
    }
}

impl Mention {
    /// The value of a field, as some write it: with `models/` in front (Google), or spaces around.
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

/// Whether a field of this name names the model, as one server or another reads the name: in any case
/// (Go's `encoding/json`), with an index behind it, or up to a zero.
pub(super) fn is_model(name: &[u8]) -> bool {
    let name = name.split(|byte| b"[\0".contains(byte)).next().unwrap_or(name).trim_ascii();
    [&b"model"[..], b"model_id"].iter().any(|model| name.eq_ignore_ascii_case(model))
}

/// What a field holds that names the model, but is no text.
pub(super) const NO_TEXT: &str = "it is not a string; give the name of a model";

const DIFFERS: &str = "it stands in the request more than once, with different values (`model_id` and \
                       other cases of the letters are the same field); give it once";

const NESTED: &str = "it stands in a settings object (`options`, `generationConfig`, `toolConfig`), and \
                      not at the root of the body; move it there";
