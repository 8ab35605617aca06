use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::Request;
use super::body::Key;
use super::tools::Tools;
use super::walk::{Walk, Walker};

/// A prompt, an input or a list of messages: one text, token numbers, or a list of items.
pub(super) struct Items<'a>(pub(super) &'a mut Request);

impl<'de> Walk<'de> for Items<'_> {
    fn text(self, text: &str) {
        self.0.items += 1;
        Content(self.0).text(text);
    }

    fn number(self, _token: u64) {
        self.0.token_ids += 1;
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Items(self.0)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut item: A) -> Result<(), A::Error> {
        let request = self.0;
        request.items += 1;
        while let Some(key) = item.next_key::<Key>()? {
            match key {
                Key::Content | Key::Output => item.next_value_seed(Walker(Content(request)))?,
                Key::Arguments => arguments(request, &mut item)?,
                Key::Name | Key::ToolCalls | Key::FunctionCall => {
                    item.next_value_seed(Walker(Calls(request)))?;
                }
                // Tools that a search found, and that join the prompt.
                Key::Tools => item.next_value_seed(Walker(Tools(request)))?,
                _ => drop(item.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The content of an item: a text, or a list of parts.
pub(super) struct Content<'a>(pub(super) &'a mut Request);

impl<'de> Walk<'de> for Content<'_> {
    fn text(self, text: &str) {
        self.0.text = self.0.text.saturating_add(text.len() as u64);
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Content(self.0)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut part: A) -> Result<(), A::Error> {
        while let Some(key) = part.next_key::<Key>()? {
            match key {
                Key::Text | Key::Refusal => part.next_value_seed(Walker(Content(self.0)))?,
                Key::Image => {
                    self.0.images += 1;
                    part.next_value::<IgnoredAny>()?;
                }
                Key::Medium => {
                    self.0.media += 1;
                    part.next_value::<IgnoredAny>()?;
                }
                _ => drop(part.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The name and the arguments of calls, at any depth.
struct Calls<'a>(&'a mut Request);

impl<'de> Walk<'de> for Calls<'_> {
    fn text(self, text: &str) {
        self.0.call_text = self.0.call_text.saturating_add(text.len() as u64);
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Calls(self.0)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut call: A) -> Result<(), A::Error> {
        while let Some(key) = call.next_key::<Key>()? {
            match key {
                Key::Arguments => arguments(self.0, &mut call)?,
                Key::Function | Key::Name => {
                    call.next_value_seed(Walker(Calls(self.0)))?;
                }
                _ => drop(call.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// What marks a call, wherever it stands.
fn arguments<'de, A: MapAccess<'de>>(request: &mut Request, call: &mut A) -> Result<(), A::Error> {
    request.calls += 1;
    call.next_value_seed(Walker(Calls(request)))
}
