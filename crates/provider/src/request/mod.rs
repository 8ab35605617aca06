//! Reads requests in every known format.

mod ambiguity;
mod amounts;
mod body;
mod counter;
mod default_model;
mod deferred;
mod definition;
mod endpoint;
mod estimates;
mod flac;
mod form;
mod key;
mod media;
mod medium;
mod most;
mod multipart;
mod named;
mod parameters;
mod pixels;
mod prompt;
mod reasoning;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod request;
mod size;
mod surrogates;
mod tokens;
mod tools;
mod unreadable;
mod walk;
mod wav;
mod without_model;
mod words;

use counter::Counter;
pub(super) use counter::Vocabulary;
pub(super) use default_model::{documented_default, missing_model, runs_named_model};
pub(super) use endpoint::Endpoint;
pub(super) use endpoint::plain as normalized_path;
pub(super) use medium::{Medium, MediumKind};
pub(super) use request::Request;
pub use unreadable::UnreadableRequest;
use words::Words;

use crate::Operation;

/// A function that returns the vocabulary of a model, if it ships with the crate.
pub(super) type Vocabularies = fn(&str) -> Option<&'static dyn Vocabulary>;

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// [`UnreadableRequest`] if the body is not a JSON object.
    pub(super) fn read(path: &str, body: &[u8]) -> Result<Self, UnreadableRequest> {
        let path = &*endpoint::normalized(path);
        let endpoint = Endpoint::of(path);
        let mut request = Self::at(endpoint);
        if let Err(error) = body::read(body, &mut request) {
            // JSON allows unpaired surrogates, for example where a text was cut within an emoji.
            let Some(body) = surrogates::replace_unpaired(body) else { return Err(error) };
            request = Self::at(endpoint);
            body::read(&body, &mut request)?;
        }
        let of_path = endpoint::model_of(path);
        request.is_named_by_path = of_path.is_some();
        let named = request.named.model.take().filter(|model| !model.is_empty());
        request.model = of_path.or(named);
        request.has_known_path = endpoint.is_some() || endpoint::invokes(path);
        request.endpoint = endpoint.unwrap_or_else(|| request.likely_endpoint());
        request.operation = Operation::of(request.endpoint, path);
        Ok(request)
    }

    /// Returns a request of which only the endpoint is known.
    fn at(endpoint: Option<Endpoint>) -> Self {
        let is_counted = endpoint == Some(Endpoint::Responses);
        Self { words: is_counted.then(|| Counter::new(&Words)), ..Self::default() }
    }

    /// Returns true if the request only counts the tokens of another one.
    pub(super) fn counts_tokens(&self, path: &str) -> bool {
        self.endpoint == Endpoint::Other && endpoint::counts_tokens(&endpoint::normalized(path))
    }

    /// Returns true if the request embeds a list of contents at Gemini.
    pub(super) fn embeds_list(&self, path: &str) -> bool {
        self.endpoint == Endpoint::Embeddings && endpoint::embeds_list(&endpoint::normalized(path))
    }

    /// Returns the endpoint that the fields of the body indicate.
    fn likely_endpoint(&self) -> Endpoint {
        match (self.has_messages, self.bound) {
            (true, _) => Endpoint::Chat,
            (false, Some(_)) => Endpoint::Completions,
            (false, None) => Endpoint::Other,
        }
    }

    /// Reads the body again and counts its texts exactly, if the model's vocabulary is known.
    pub(super) fn count_texts(self, body: &[u8], vocabulary: Vocabularies) -> Self {
        let Some(vocabulary) = self.model.as_deref().and_then(vocabulary) else { return self };
        let mut request = Self { counter: Some(Counter::new(vocabulary)), ..Self::default() };
        match body::read(body, &mut request) {
            Ok(()) => {
                let Self { model, endpoint, operation, modes, has_known_path, .. } = self;
                let Self { words, definitions, deferred, reasoning, items, .. } = self;
                let has_kept_content = self.has_kept_content;
                let request = Self { words, definitions, deferred, reasoning, items, ..request };
                let request = Self { has_kept_content, ..request };
                Self { model, endpoint, operation, modes, has_known_path, ..request }
            }
            Err(_) => self,
        }
    }
}
