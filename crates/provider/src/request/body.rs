use compact_str::CompactString;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};

use super::definition::Definition;
use super::key::{Key, RootKey};
use super::media::Media;
use super::medium::MediumKind;
use super::named::{Mention, NOT_A_STRING};
use super::prompt::{Content, Items};
use super::reasoning::ReasoningField;
use super::request::Request;
use super::size::JsonSize;
use super::tools::Tools;
use super::unreadable::UnreadableRequest;
use super::walk::{Walk, Walker};

/// Reads a body and counts its parts.
///
/// # Errors
/// [`UnreadableRequest`] if the body is not a complete JSON object. The part before the error is counted.
pub(super) fn read(body: &[u8], request: &mut Request) -> Result<(), UnreadableRequest> {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
    if body.is_empty() {
        return Ok(());
    }
    if !body.starts_with(b"{") {
        return Err(UnreadableRequest::body(
            "not a JSON object; send one, in UTF-8 and uncompressed",
        ));
    }
    request.body = body.len() as u64;
    let mut json = serde_json::Deserializer::from_slice(body);
    Walker(Root(request)).deserialize(&mut json)?;
    Ok(json.end()?)
}

/// The root object of a body, which names the model.
struct Root<'a>(&'a mut Request);

impl<'de> Walk<'de> for Root<'_> {
    fn object<A: MapAccess<'de>>(self, mut body: A) -> Result<(), A::Error> {
        while let Some(RootKey(key)) = body.next_key()? {
            match key {
                Key::Model => {
                    let mut mention = Mention::Other(NOT_A_STRING);
                    body.next_value_seed(Walker(&mut mention))?;
                    self.0.named.add(mention);
                }
                Key::Models => body.next_value_seed(Walker(Fallbacks(&mut self.0.fallbacks)))?,
                Key::Speed => body.next_value_seed(Walker(&mut self.0.modes.speed))?,
                Key::ServiceTier => {
                    body.next_value_seed(Walker(Tier(&mut self.0.modes.service_tier)))?;
                }
                Key::InferenceGeo => {
                    body.next_value_seed(Walker(&mut self.0.modes.inference_geo))?;
                }
                Key::Kept => body.next_value_seed(Walker(Kept(self.0)))?,
                Key::ReasoningEffort => {
                    body.next_value_seed(Walker(ReasoningField(&mut self.0.reasons)))?;
                }
                _ => read_field(self.0, key, &mut body)?,
            }
        }
        Ok(())
    }
}

/// A tier of service: its name, or an object with it (`{"type": "priority"}`, Bedrock).
struct Tier<'a>(&'a mut Option<CompactString>);

impl<'de> Walk<'de> for Tier<'_> {
    fn text(self, text: &str) {
        self.0.text(text);
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<Key>()? {
            match key {
                Key::Type => object.next_value_seed(Walker(&mut *self.0))?,
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The models that may answer instead of the one that the request names. What isn't a name is kept as a model without a
/// name, which has no price.
struct Fallbacks<'a>(&'a mut Vec<CompactString>);

impl<'de> Walk<'de> for Fallbacks<'_> {
    fn text(self, text: &str) {
        self.0.push(text.trim().into());
    }

    fn number(self, _: u64) {
        self.0.push(CompactString::default());
    }

    fn flag(self, _: bool) {
        self.0.push(CompactString::default());
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Fallbacks(self.0)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.0.push(CompactString::default());
        ().object(object)
    }
}

/// Content that the provider keeps, such as an earlier response: its id, or an object with it.
struct Kept<'a>(&'a mut Request);

impl<'de> Walk<'de> for Kept<'_> {
    fn text(self, _: &str) {
        self.0.has_kept_content = true;
    }

    fn object<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.0.has_kept_content = true;
        ().object(object)
    }
}

/// An object in a body that holds some of its fields: `generationConfig`, `options`.
struct Settings<'a>(&'a mut Request);

impl<'de> Walk<'de> for Settings<'_> {
    fn object<A: MapAccess<'de>>(self, mut settings: A) -> Result<(), A::Error> {
        while let Some(key) = settings.next_key::<Key>()? {
            if key == Key::Model {
                self.0.named.add_nested();
            }
            read_field(self.0, key, &mut settings)?;
        }
        Ok(())
    }
}

fn read_field<'de, A: MapAccess<'de>>(
    r: &mut Request,
    key: Key,
    body: &mut A,
) -> Result<(), A::Error> {
    match key {
        Key::Stream => body.next_value_seed(Walker(&mut r.stream)),
        Key::Background => body.next_value_seed(Walker(&mut r.background)),
        Key::McpServers => count_stated(&mut r.built_in, body),
        Key::WebSearchOptions => count_stated(&mut r.searches, body),
        Key::Choices => keep_larger(&mut r.choices, body),
        Key::Bound => keep_larger(&mut r.bound, body),
        Key::Config => body.next_value_seed(Walker(Settings(r))),
        Key::Messages => {
            r.has_messages = true;
            body.next_value_seed(Walker(Items(r)))
        }
        Key::Prompt => body.next_value_seed(Walker(Strings(r))),
        Key::Suffix => body.next_value_seed(Walker(Content(r))),
        Key::Input | Key::Instructions | Key::Message | Key::Content | Key::Documents => {
            body.next_value_seed(Walker(Items(r)))
        }
        Key::Tools | Key::Functions => body.next_value_seed(Walker(Tools::of_request(r))),
        Key::ResponseFormat | Key::Text => read_format(r, body),
        Key::Images => body.next_value_seed(Walker(Media::new(r, MediumKind::Image))),
        _ => body.next_value::<IgnoredAny>().map(drop),
    }
}

/// Counts a member that is stated and not null.
fn count_stated<'de, A: MapAccess<'de>>(count: &mut u64, body: &mut A) -> Result<(), A::Error> {
    *count += u64::from(body.next_value::<Option<IgnoredAny>>()?.is_some());
    Ok(())
}

/// Reads the format of the answer.
fn read_format<'de, A: MapAccess<'de>>(r: &mut Request, body: &mut A) -> Result<(), A::Error> {
    let (mut size, mut tokens) = (0, 0);
    if r.words.is_some() {
        let definition = Definition { size: &mut size, tokens: &mut tokens };
        body.next_value_seed(Walker(definition))?;
    } else {
        body.next_value_seed(Walker(JsonSize(&mut size)))?;
    }
    r.schema = r.schema.saturating_add(size);
    // Others have no schema: `{"format": {"type": "text"}, "verbosity": "medium"}`.
    if tokens > 0 {
        r.add_definition(tokens.saturating_add(PER_FORMAT));
    }
    Ok(())
}

/// A prompt outside a conversation: one text, several texts, or token ids.
struct Strings<'a>(&'a mut Request);

impl<'de> Walk<'de> for Strings<'_> {
    fn text(self, text: &str) {
        self.0.texts += 1;
        Content(self.0).text(text);
    }

    fn number(self, _token_id: u64) {
        self.0.token_ids += 1;
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let (texts, token_ids) = (self.0.prompts(), self.0.token_ids);
        while list.next_element_seed(Walker(Strings(self.0)))?.is_some() {}
        // Token ids that stand in no other list are a prompt.
        let holds_ids = self.0.token_ids > token_ids && self.0.prompts() == texts;
        self.0.token_lists += u64::from(holds_ids);
        Ok(())
    }

    /// Reads a prompt that the provider keeps (`{"id": "pmpt_1"}`, OpenAI).
    fn object<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.0.has_kept_prompt = true;
        ().object(object)
    }
}

/// Reads a number and keeps the larger one: as many choices are generated as the larger of `n` and
/// `best_of`.
fn keep_larger<'de, A: MapAccess<'de>>(
    largest: &mut Option<u64>,
    body: &mut A,
) -> Result<(), A::Error> {
    let mut number = None;
    body.next_value_seed(Walker(&mut number))?;
    *largest = (*largest).max(number);
    Ok(())
}

/// The tokens that introduce a schema of the answer, which a model is shown as a definition (recorded: 6 prompts, of
/// which 3 are 1 or 2 tokens off and 3 are 4 to 16).
const PER_FORMAT: u64 = 28;

/// The byte order mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
