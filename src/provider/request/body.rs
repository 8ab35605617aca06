use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};

use super::Request;
use super::prompt::{Content, Items};
use super::size::JsonSize;
use super::tools::{Functions, Tools};
use super::walk::{Walk, Walker};

/// The counts of a body, or `None` where it is no JSON object, or not all of one.
pub(super) fn read(body: &[u8]) -> Option<Request> {
    let mut request = Request::default();
    if body.trim_ascii().is_empty() {
        return Some(request);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    Walker(Body(&mut request)).deserialize(&mut json).ok()?;
    json.end().ok()?;
    body.trim_ascii_start().starts_with(b"{").then_some(request)
}

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
        Key::Model => body.next_value_seed(Walker(&mut r.model)),
        Key::Stream => body.next_value_seed(Walker(&mut r.stream)),
        Key::Choices => body.next_value_seed(Walker(Largest(&mut r.choices))),
        Key::Bound => {
            let mut bound = None;
            body.next_value_seed(Walker(&mut bound))?;
            r.bound = r.bound.max(bound);
            Ok(())
        }
        Key::Messages => {
            r.has_messages = true;
            body.next_value_seed(Walker(Items(r)))
        }
        Key::Prompt => body.next_value_seed(Walker(Strings(r))),
        Key::Input | Key::Instructions => body.next_value_seed(Walker(Items(r))),
        Key::Tools => body.next_value_seed(Walker(Tools(r))),
        Key::Functions => body.next_value_seed(Walker(Functions(r))),
        Key::ResponseFormat | Key::Text => body.next_value_seed(Walker(JsonSize(&mut r.schema))),
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
struct Largest<'a>(&'a mut u64);

impl Walk<'_> for Largest<'_> {
    fn number(self, number: u64) {
        *self.0 = number.max(*self.0);
    }
}

/// The keys that are looked for, at any level.
#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum Key {
    Model,
    Stream,
    #[serde(alias = "best_of", rename = "n")]
    Choices,
    #[serde(rename = "max_tokens", alias = "max_completion_tokens", alias = "max_output_tokens")]
    Bound,
    Messages,
    Prompt,
    Input,
    Instructions,
    Tools,
    Functions,
    ResponseFormat,
    Text,
    Content,
    Output,
    Name,
    Arguments,
    ToolCalls,
    FunctionCall,
    Function,
    Refusal,
    Type,
    #[serde(rename = "image_url")]
    Image,
    #[serde(
        rename = "input_audio",
        alias = "video_url",
        alias = "audio_url",
        alias = "file",
        alias = "file_id",
        alias = "file_url",
        alias = "file_data"
    )]
    Medium,
    #[serde(other)]
    Other,
}
