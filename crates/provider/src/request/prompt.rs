use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::key::Key;
use super::media::Media;
use super::medium::MediumKind;
use super::request::Request;
use super::size::JsonSize;
use super::tools::Tools;
use super::walk::{Walk, Walker};

/// A prompt, an input or a list of messages: one text, token ids, or a list of items.
pub(super) struct Items<'a>(pub(super) &'a mut Request);

impl<'de> Walk<'de> for Items<'_> {
    fn text(self, text: &str) {
        self.0.items += 1;
        Content(self.0).text(text);
    }

    fn number(self, _token_id: u64) {
        self.0.token_ids += 1;
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Items(self.0)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, item: A) -> Result<(), A::Error> {
        self.0.items += 1;
        if self.0.words.is_some() {
            return ResponsesItem(self.0).object(item);
        }
        Content(self.0).object(item)
    }
}

/// An item of Responses, which may be one that the provider keeps: `{"type": "item_reference", "id": ..}`, of which the
/// type may be left out.
struct ResponsesItem<'a>(&'a mut Request);

impl<'de> Walk<'de> for ResponsesItem<'_> {
    fn object<A: MapAccess<'de>>(self, mut item: A) -> Result<(), A::Error> {
        let mut kind = ItemKind::default();
        let (mut has_id, mut has_content) = (false, false);
        while let Some(key) = item.next_key::<Key>()? {
            match key {
                Key::Type => item.next_value_seed(Walker(&mut kind))?,
                _ => {
                    has_id |= key == Key::Id;
                    has_content |= matches!(key, Key::Role | Key::Content);
                    read_field(self.0, key, &mut item)?;
                }
            }
        }
        let is_bare = has_id && !has_content && !kind.is_stated;
        self.0.has_kept_content |= is_bare || kind.is_reference;
        Ok(())
    }
}

/// The type of an item of Responses.
#[derive(Default)]
struct ItemKind {
    is_stated: bool,
    is_reference: bool,
}

impl Walk<'_> for &mut ItemKind {
    fn text(self, text: &str) {
        self.is_stated = true;
        self.is_reference |= text == "item_reference";
    }
}

/// The content of an item (a text or a list of parts), or a part, which may hold others.
pub(super) struct Content<'a>(pub(super) &'a mut Request);

impl<'de> Walk<'de> for Content<'_> {
    fn text(self, text: &str) {
        self.0.add_text(text);
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Content(self.0)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut part: A) -> Result<(), A::Error> {
        while let Some(key) = part.next_key::<Key>()? {
            read_field(self.0, key, &mut part)?;
        }
        Ok(())
    }
}

fn read_field<'de, A: MapAccess<'de>>(
    r: &mut Request,
    key: Key,
    part: &mut A,
) -> Result<(), A::Error> {
    match key {
        Key::Content | Key::Text | Key::Message => part.next_value_seed(Walker(Content(r))),
        Key::Arguments | Key::Input => read_arguments(r, part),
        Key::Name => {
            r.names += 1;
            part.next_value_seed(Walker(Calls(r)))
        }
        // A call of a function that was loaded later states its namespace.
        Key::Namespace => {
            r.calls += 1;
            part.next_value_seed(Walker(Calls(r)))
        }
        Key::Role if r.words.is_some() => part.next_value_seed(Walker(Role(r))),
        Key::EncryptedContent if r.words.is_some() => part.next_value_seed(Walker(Reasoning(r))),
        Key::ToolCalls => part.next_value_seed(Walker(Calls(r))),
        Key::Response => part.next_value_seed(Walker(JsonSize(&mut r.call_text))),
        // Tools that a tool search found, which become part of the prompt.
        Key::Tools => part.next_value_seed(Walker(Tools::of_item(r))),
        Key::Image | Key::Images => part.next_value_seed(Walker(Media::new(r, MediumKind::Image))),
        Key::Audio => part.next_value_seed(Walker(Media::new(r, MediumKind::Audio))),
        Key::Video => part.next_value_seed(Walker(Media::new(r, MediumKind::Video))),
        Key::File => part.next_value_seed(Walker(Media::new(r, MediumKind::Document))),
        _ => part.next_value::<IgnoredAny>().map(drop),
    }
}

/// The role of an item of Responses.
struct Role<'a>(&'a mut Request);

impl Walk<'_> for Role<'_> {
    fn text(self, role: &str) {
        // The reasoning before a message of the user isn't shown to the model again
        // (developers.openai.com/api/docs/guides/reasoning; recorded: 1 prompt).
        if role == "user" {
            self.0.reasoning = 0;
        }
    }
}

/// The encrypted content of an item of reasoning, which is shown to the model until the user's next message.
struct Reasoning<'a>(&'a mut Request);

impl Walk<'_> for Reasoning<'_> {
    fn text(self, encrypted: &str) {
        let request = self.0;
        request.items = request.items.saturating_sub(1);
        let bytes = (encrypted.len() as u64).saturating_sub(SHORTEST_REASONING);
        request.reasoning = request.reasoning.saturating_add(bytes * 5 / 24);
    }
}

/// The bytes of encrypted reasoning without any text. Beyond it, a token has 4.8 bytes (recorded: 7 prompts, with 1,036
/// to 9,572 bytes, are 1 to 16 tokens off).
const SHORTEST_REASONING: u64 = 900;

/// The names and the arguments of calls, at any depth.
struct Calls<'a>(&'a mut Request);

impl<'de> Walk<'de> for Calls<'_> {
    fn text(self, text: &str) {
        self.0.add_call_text(text);
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Calls(self.0)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut call: A) -> Result<(), A::Error> {
        while let Some(key) = call.next_key::<Key>()? {
            match key {
                Key::Arguments | Key::Input => read_arguments(self.0, &mut call)?,
                Key::Function | Key::Name => {
                    call.next_value_seed(Walker(Calls(self.0)))?;
                }
                _ => drop(call.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads arguments, each of which counts as a call.
fn read_arguments<'de, A: MapAccess<'de>>(
    request: &mut Request,
    call: &mut A,
) -> Result<(), A::Error> {
    request.calls += 1;
    call.next_value_seed(Walker(Arguments(request)))
}

/// The arguments of a call, as JSON or as a text that holds JSON.
struct Arguments<'a>(&'a mut Request);

impl<'de> Walk<'de> for Arguments<'_> {
    fn text(self, text: &str) {
        Calls(self.0).text(text);
    }

    fn list<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        JsonSize(&mut self.0.call_text).list(list)
    }

    fn object<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        JsonSize(&mut self.0.call_text).object(object)
    }
}
