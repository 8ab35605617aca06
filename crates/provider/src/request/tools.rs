use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use super::definition::{Definition, Shown};
use super::request::Request;
use super::size::JsonSize;
use super::walk::{Walk, Walker};

/// A list of tools, or of the legacy `functions`, which have no type. Functions are counted by size, tools that the
/// provider runs itself by number.
pub(super) struct Tools<'a> {
    request: &'a mut Request,
    /// True if the tools were loaded in the course of the conversation.
    are_loaded: bool,
}

impl<'a> Tools<'a> {
    /// The tools of a request.
    pub(super) fn of_request(request: &'a mut Request) -> Self {
        Self { request, are_loaded: false }
    }

    /// The tools in an item of a conversation.
    pub(super) fn of_item(request: &'a mut Request) -> Self {
        request.deferred.add_list();
        Self { request, are_loaded: true }
    }

    fn add(&mut self, tool: &Tool) {
        let request = &mut *self.request;
        match tool.kind {
            Kind::Function => {
                request.functions += 1;
                request.schema = request.schema.saturating_add(tool.size);
                if tool.is_deferred && !self.are_loaded {
                    request.deferred.add_deferred(tool.listed);
                } else {
                    request.add_definition(tool.listed.saturating_add(tool.tokens));
                }
                if self.are_loaded {
                    request.deferred.add_loaded();
                }
            }
            Kind::WebSearch => request.searches += 1,
            Kind::ToolSearch => {
                request.built_in += 1;
                if tool.is_described() {
                    request.deferred.add_client_search();
                } else {
                    request.deferred.add_hosted_search();
                }
                request.add_definition(tool.listed.saturating_add(tool.tokens));
            }
            Kind::Other => request.built_in += 1,
        }
    }
}

impl<'de> Walk<'de> for Tools<'_> {
    fn list<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut tool = Tool::of(self.request);
        while list.next_element_seed(Walker(&mut tool))?.is_some() {
            self.add(&tool);
            tool = Tool::of(self.request);
        }
        Ok(())
    }

    /// Reads one tool without a list around it.
    fn object<A: MapAccess<'de>>(mut self, object: A) -> Result<(), A::Error> {
        let mut tool = Tool::of(self.request);
        (&mut tool).object(object)?;
        self.add(&tool);
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct Tool {
    kind: Kind,
    size: u64,
    /// The estimated tokens of the name and the description, if they count.
    listed: u64,
    /// The estimated tokens of the rest of the definition, if they count.
    tokens: u64,
    is_deferred: bool,
    counts_tokens: bool,
}

impl Tool {
    /// Returns an unread tool of a request.
    fn of(request: &Request) -> Self {
        Self { counts_tokens: request.words.is_some(), ..Self::default() }
    }

    /// Returns true if the tool has a description or parameters that count.
    fn is_described(&self) -> bool {
        self.listed > 0 || self.tokens > 0
    }
}

/// A tool without a type is a function: Anthropic's, Bedrock's, Google's.
#[derive(Default)]
enum Kind {
    #[default]
    Function,
    WebSearch,
    ToolSearch,
    Other,
}

/// The members of a tool that are read apart from its other members.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum ToolKey {
    Type,
    Name,
    Description,
    DeferLoading,
    #[serde(other)]
    Other,
}

impl<'de> Walk<'de> for &mut Tool {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let counts_tokens = self.counts_tokens;
        while let Some(key) = object.next_key::<ToolKey>()? {
            let Tool { size, listed, tokens, .. } = &mut *self;
            match key {
                ToolKey::Type => object.next_value_seed(Walker(&mut self.kind))?,
                ToolKey::DeferLoading => object.next_value_seed(Walker(&mut self.is_deferred))?,
                _ if !counts_tokens => object.next_value_seed(Walker(JsonSize(size)))?,
                ToolKey::Name => {
                    let definition = Definition { size, tokens: listed };
                    object.next_value_seed(Walker(Shown::name(definition)))?;
                }
                ToolKey::Description => {
                    let definition = Definition { size, tokens: listed };
                    object.next_value_seed(Walker(Shown::comment(definition)))?;
                }
                ToolKey::Other => object.next_value_seed(Walker(Definition { size, tokens }))?,
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
            "tool_search" => Kind::ToolSearch,
            // Also `web_search_preview`, and those with a date.
            _ if text.starts_with("web_search") => Kind::WebSearch,
            _ => Kind::Other,
        };
    }
}
