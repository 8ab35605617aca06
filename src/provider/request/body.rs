use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};

use super::Request;
use super::key::Key;
use super::medium::{Kind, Media};
use super::prompt::{Content, Items};
use super::size::JsonSize;
use super::tools::{Functions, Tools};
use super::walk::{Walk, Walker};

/// Counts a body; `None` where it is no JSON object, or not all of one. What stood before the place
/// that could not be read is counted.
pub(super) fn read(body: &[u8], request: &mut Request) -> Option<()> {
    let body = body.strip_prefix(MARK).unwrap_or(body).trim_ascii();
    if body.is_empty() {
        return Some(());
    }
    if !body.starts_with(b"{") {
        return None;
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    Walker(Body(request)).deserialize(&mut json).ok()?;
    json.end().ok()
}

/// A body, or an object within it that holds some of its fields: `generationConfig`, `options`.
struct Body<'a>(&'a mut Request);

impl<'de> Walk<'de> for Body<'_> {
    fn object<A: MapAccess<'de>>(self, mut body: A) -> Result<(), A::Error> {
        while let Some(key) = body.next_key::<Key>()? {
            field(self.0, key, &mut body)?;
        }
        Ok(())
    }
}

fn field<'de, A: MapAccess<'de>>(r: &mut Request, key: Key, body: &mut A) -> Result<(), A::Error> {
    match key {
        Key::Model => {
            body.next_value_seed(Walker(&mut r.model))?;
            let bare = r.model.as_deref().and_then(|model| model.strip_prefix("models/"));
            r.model = bare.map(Into::into).or(r.model.take());
            Ok(())
        }
        Key::Stream => body.next_value_seed(Walker(&mut r.stream)),
        Key::Choices => body.next_value_seed(Walker(Largest(&mut r.choices))),
        Key::Bound => {
            let mut bound = None;
            body.next_value_seed(Walker(&mut bound))?;
            r.bound = r.bound.max(bound);
            Ok(())
        }
        Key::Config => body.next_value_seed(Walker(Body(r))),
        Key::Messages => {
            r.has_messages = true;
            body.next_value_seed(Walker(Items(r)))
        }
        Key::Prompt => body.next_value_seed(Walker(Strings(r))),
        Key::Input | Key::Instructions | Key::Message | Key::Content | Key::Documents => {
            body.next_value_seed(Walker(Items(r)))
        }
        Key::Tools => body.next_value_seed(Walker(Tools(r))),
        Key::Functions => body.next_value_seed(Walker(Functions(r))),
        Key::ResponseFormat | Key::Text => body.next_value_seed(Walker(JsonSize(&mut r.schema))),
        Key::Images => body.next_value_seed(Walker(Media::new(r, Kind::Image))),
        _ => body.next_value::<IgnoredAny>().map(drop),
    }
}

/// A prompt without conversation around it: one text, several, or token numbers.
struct Strings<'a>(&'a mut Request);

impl<'de> Walk<'de> for Strings<'_> {
    fn text(self, text: &str) {
        Content(self.0).text(text);
    }

    fn number(self, _token: u64) {
        self.0.token_ids += 1;
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Strings(self.0)))?.is_some() {}
        Ok(())
    }
}

/// Keeps the larger: of `n` and `best_of`, what is generated is the larger.
struct Largest<'a>(&'a mut Option<u64>);

impl Walk<'_> for Largest<'_> {
    fn number(self, number: u64) {
        *self.0 = (*self.0).max(Some(number));
    }
}

/// The byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";
