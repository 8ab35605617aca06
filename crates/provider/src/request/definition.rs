use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use super::counter::Vocabulary;
use super::size::JsonSize;
use super::walk::{Walk, Walker};
use super::words::Words;

/// The definition of a function or a schema: its size as compact JSON, and its estimated tokens in the notation in
/// which OpenAI shows it to a model:
///
/// ```text
/// // Returns the weather.
/// type get_weather = (_: {
/// // The name of the city
/// city: string,
/// unit?: "celsius" | "fahrenheit",
/// }) => any;
/// ```
///
/// The notation is that of `template_tools_section` in github.com/openai/harmony. Titles are shown as descriptions are
/// (recorded: 7 prompts).
pub(super) struct Definition<'a> {
    pub(super) size: &'a mut u64,
    pub(super) tokens: &'a mut u64,
}

impl Definition<'_> {
    fn reborrow(&mut self) -> Definition<'_> {
        Definition { size: self.size, tokens: self.tokens }
    }

    fn show(&mut self, text: &str) {
        *self.tokens = self.tokens.saturating_add(Words.count(text));
    }
}

impl<'de> Walk<'de> for Definition<'_> {
    fn text(self, text: &str) {
        JsonSize(self.size).text(text);
    }

    fn number(self, number: u64) {
        JsonSize(self.size).number(number);
    }

    fn flag(self, flag: bool) {
        JsonSize(self.size).flag(flag);
    }

    fn list<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        *self.size += 1;
        while list.next_element_seed(Walker(self.reborrow()))?.is_some() {
            *self.size += 1;
        }
        Ok(())
    }

    fn object<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        *self.size += 1;
        while let Some(Name(name)) = object.next_key()? {
            *self.size += name.len() as u64 + 4;
            match &*name {
                "name" => object.next_value_seed(Walker(Shown::name(self.reborrow())))?,
                "description" | "title" => {
                    object.next_value_seed(Walker(Shown::comment(self.reborrow())))?;
                }
                "const" => object.next_value_seed(Walker(Shown::value(self.reborrow())))?,
                "enum" => object.next_value_seed(Walker(Values(self.reborrow())))?,
                "properties" => object.next_value_seed(Walker(Properties(self.reborrow())))?,
                _ => object.next_value_seed(Walker(self.reborrow()))?,
            }
        }
        Ok(())
    }
}

/// A value whose text a model is shown, with this many tokens around it.
pub(super) struct Shown<'a> {
    definition: Definition<'a>,
    around: u64,
}

impl<'a> Shown<'a> {
    /// A name, which has no tokens around it.
    pub(super) fn name(definition: Definition<'a>) -> Self {
        Self { definition, around: 0 }
    }

    /// A description or a title, on a line of its own.
    pub(super) fn comment(definition: Definition<'a>) -> Self {
        Self { definition, around: PER_COMMENT }
    }

    /// A value that a property may have.
    fn value(definition: Definition<'a>) -> Self {
        Self { definition, around: PER_VALUE }
    }
}

impl<'de> Walk<'de> for Shown<'_> {
    fn text(mut self, text: &str) {
        if !text.is_empty() {
            self.definition.show(text);
            *self.definition.tokens = self.definition.tokens.saturating_add(self.around);
        }
        self.definition.text(text);
    }

    fn number(self, number: u64) {
        self.definition.number(number);
    }

    fn flag(self, flag: bool) {
        self.definition.flag(flag);
    }

    fn list<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.definition.list(list)
    }

    fn object<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.definition.object(object)
    }
}

/// The values that a property may have.
struct Values<'a>(Definition<'a>);

impl<'de> Walk<'de> for Values<'_> {
    fn list<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Shown::value(self.0.reborrow())))?.is_some() {
            *self.0.size += 1;
        }
        Ok(())
    }
}

/// The properties of an object, each with its name.
struct Properties<'a>(Definition<'a>);

impl<'de> Walk<'de> for Properties<'_> {
    fn object<A: MapAccess<'de>>(mut self, mut properties: A) -> Result<(), A::Error> {
        *self.0.size += 1;
        let mut around = PER_OBJECT;
        while let Some(Name(name)) = properties.next_key()? {
            *self.0.size += name.len() as u64 + 4;
            *self.0.tokens += around + PER_PROPERTY;
            around = 0;
            self.0.show(&name);
            properties.next_value_seed(Walker(self.0.reborrow()))?;
        }
        Ok(())
    }
}

/// The name of a member, borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The tokens around the properties of an object: `(_`, `:`, ` {\n` and `})` in place of ` ()`.
const PER_OBJECT: u64 = 3;

/// The tokens of a property beside its name: `:`, its type and `,\n`.
const PER_PROPERTY: u64 = 3;

/// The tokens around a description: `//` and the end of the line.
const PER_COMMENT: u64 = 2;

/// The tokens around a value: quotes and ` |`.
const PER_VALUE: u64 = 3;
