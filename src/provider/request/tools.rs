use serde::de::{MapAccess, SeqAccess};

use super::Request;
use super::definition::{Definition, Shown};
use super::key::Key;
use super::size::JsonSize;
use super::walk::{Walk, Walker};

/// A list of tools. Functions are counted by size, tools that the provider runs itself by number.
pub(super) struct Tools<'a>(pub(super) &'a mut Request);

impl Tools<'_> {
    fn add(&mut self, tool: &Tool) {
        match tool.kind {
            Kind::Function => {
                self.0.functions += 1;
                self.0.schema = self.0.schema.saturating_add(tool.size);
                self.0.definitions = self.0.definitions.saturating_add(tool.tokens);
            }
            Kind::WebSearch => self.0.searches += 1,
            Kind::Other => self.0.built_in += 1,
        }
    }
}

impl<'de> Walk<'de> for Tools<'_> {
    fn list<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut tool = Tool::of(self.0);
        while list.next_element_seed(Walker(&mut tool))?.is_some() {
            self.add(&tool);
            tool = Tool::of(self.0);
        }
        Ok(())
    }

    /// Reads one tool without a list around it.
    fn object<A: MapAccess<'de>>(mut self, object: A) -> Result<(), A::Error> {
        let mut tool = Tool::of(self.0);
        (&mut tool).object(object)?;
        self.add(&tool);
        Ok(())
    }
}

/// The legacy `functions`: definitions without a type around them.
pub(super) struct Functions<'a>(pub(super) &'a mut Request);

impl<'de> Walk<'de> for Functions<'_> {
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(JsonSize(&mut self.0.schema)))?.is_some() {
            self.0.functions += 1;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Tool {
    kind: Kind,
    size: u64,
    /// The estimated tokens of the definition, if they count.
    tokens: u64,
    counts_tokens: bool,
}

impl Tool {
    /// Returns an unread tool of a request.
    fn of(request: &Request) -> Self {
        Self { counts_tokens: request.words.is_some(), ..Self::default() }
    }
}

/// A tool without a type is a function: Anthropic's, Bedrock's, Google's.
#[derive(Default)]
enum Kind {
    #[default]
    Function,
    WebSearch,
    Other,
}

impl<'de> Walk<'de> for &mut Tool {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<Key>()? {
            match key {
                Key::Type => object.next_value_seed(Walker(&mut self.kind))?,
                // The texts of a function are its name and its description.
                _ if self.counts_tokens => {
                    let Tool { size, tokens, .. } = &mut *self;
                    object.next_value_seed(Walker(Shown(Definition { size, tokens })))?;
                }
                _ => object.next_value_seed(Walker(JsonSize(&mut self.size)))?,
            }
            // The approximate size of the key.
            self.size = self.size.saturating_add(10);
        }
        Ok(())
    }
}

impl Walk<'_> for &mut Kind {
    fn text(self, text: &str) {
        *self = match text {
            "function" | "custom" => Kind::Function,
            // Also `web_search_preview`, and those with a date.
            _ if text.starts_with("web_search") => Kind::WebSearch,
            _ => Kind::Other,
        };
    }
}
