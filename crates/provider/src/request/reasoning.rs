use serde::Deserialize;
use serde::de::MapAccess;

use super::walk::{Walk, Walker};

/// A field that asks for reasoning, or turns it off: `reasoning_effort: "none"` and `reasoning: {effort: "none"}`
/// (OpenAI), `thinking: {type: "disabled"}` (Anthropic).
pub(super) struct ReasoningField<'a>(pub(super) &'a mut Option<bool>);

impl<'de> Walk<'de> for ReasoningField<'_> {
    fn text(self, text: &str) {
        self.add(!matches!(text, "none" | "disabled"));
    }

    fn flag(self, flag: bool) {
        self.add(flag);
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut setting = None;
        while let Some(key) = object.next_key::<Key>()? {
            match key {
                Key::Type | Key::Effort => {
                    object.next_value_seed(Walker(ReasoningField(&mut setting)))?;
                }
                Key::Other => drop(object.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        self.add(setting.unwrap_or(true));
        Ok(())
    }
}

impl ReasoningField<'_> {
    /// Adds a setting. One that asks for reasoning takes precedence.
    fn add(self, reasons: bool) {
        *self.0 = Some(reasons || *self.0 == Some(true));
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Type,
    Effort,
    #[serde(other)]
    Other,
}
