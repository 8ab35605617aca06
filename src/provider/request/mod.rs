//! Requests of every shape, counted without being kept.

mod body;
mod endpoint;
mod prompt;
mod size;
mod tools;
mod walk;

use compact_str::CompactString;

pub(super) use endpoint::Endpoint;

use super::Estimate;
use super::estimate::tokens;
use super::reserve::Reserved;

/// What a request body says of its size: counts only, and the model.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) model: Option<CompactString>,
    pub(super) stream: bool,
    /// Bytes of UTF-8 in the contents of messages, the prompt, the input, the instructions.
    pub(super) text: u64,
    /// Messages, and the other items of a conversation.
    pub(super) items: u64,
    /// Tokens that were sent as numbers (embeddings, completions).
    pub(super) token_ids: u64,
    /// Tool calls in the conversation.
    pub(super) calls: u64,
    /// Bytes of their names and arguments.
    pub(super) call_text: u64,
    pub(super) images: u64,
    /// Files and sounds.
    pub(super) media: u64,
    /// Functions among the tools.
    pub(super) functions: u64,
    /// Web searches among the tools.
    pub(super) searches: u64,
    /// Bytes of compact JSON of the functions and of the schema of the answer.
    pub(super) schema: u64,
    /// `n` or `best_of`.
    choices: u64,
    /// `max_tokens`, `max_completion_tokens` or `max_output_tokens`, of one choice.
    bound: Option<u64>,
    /// Whether it has `messages`, which tells a chat where the path does not.
    has_messages: bool,
    pub(super) endpoint: Endpoint,
}

impl Request {
    /// The counts of a request with this path and body.
    ///
    /// # Errors
    /// What it is estimated by its size where the body is no JSON object.
    pub(super) fn read(path: &str, body: &[u8]) -> Result<Self, Estimate> {
        let Some(mut request) = body::read(body) else {
            let size = Self::fallback_size(body);
            return Err(Estimate { model: endpoint::model(path), ..Estimate::from_size(size) });
        };
        request.model = request.model.take().or_else(|| endpoint::model(path));
        let chat = if request.has_messages { Endpoint::Chat } else { Endpoint::Other };
        request.endpoint = Endpoint::of(path).unwrap_or(chat);
        Ok(request)
    }

    /// How many bytes of an unreadable body are to be charged as text: all, but none of a form with
    /// a file in it, whose size says nothing of tokens.
    fn fallback_size(body: &[u8]) -> u64 {
        if body.starts_with(b"--") { 0 } else { body.len() as u64 }
    }

    /// The most that all choices together may generate, in tokens.
    pub(super) fn max_output(&self) -> Option<u64> {
        self.bound.map(|bound| bound.saturating_mul(self.choices()))
    }

    /// [`max_output`](Self::max_output), or `unbounded` for each choice.
    pub(super) fn output(&self, unbounded: u64) -> u64 {
        self.max_output().unwrap_or_else(|| unbounded.saturating_mul(self.choices()))
    }

    /// The prompt's tokens as they are likely to be: text at 4 bytes a token, a function's
    /// definition at 8 bytes of its JSON, since the model sees it in a shorter notation.
    ///
    /// A conversation costs 4 tokens an item and 3 to begin the answer (OpenAI's cookbook), 8 more
    /// to introduce functions, and 8 more a call (recordings). Of 152 recorded prompts of mere text,
    /// 118 are within 3 tokens and 10 % of it.
    pub(super) fn prompt_tokens(&self) -> u64 {
        let functions = if self.functions > 0 { 8 } else { 0 };
        tokens(self.text)
            .saturating_add(self.token_ids)
            .saturating_add(tokens(self.call_text))
            .saturating_add(self.calls.saturating_mul(8))
            .saturating_add(self.schema / 8)
            .saturating_add(functions)
            .saturating_add(self.searches.saturating_mul(WEB_SEARCH))
            .saturating_add(self.seen())
            .saturating_add(self.framing(4, 3))
    }

    /// The prompt's tokens as they seldom exceed: text at 3 bytes a token, JSON at 4.
    pub(super) fn prompt_bound(&self) -> u64 {
        (self.text.saturating_add(self.call_text).div_ceil(3))
            .saturating_add(self.token_ids)
            .saturating_add(self.calls.saturating_mul(16))
            .saturating_add(self.schema / 4)
            .saturating_add(self.seen())
            .saturating_add(self.framing(8, 16))
    }

    pub(super) fn into_estimate(self, reserved: Reserved) -> Estimate {
        let (max_output, stream) = (self.max_output(), self.stream);
        let Reserved { cost, floor, guess } = reserved;
        Estimate { model: self.model, cost, floor, stream, max_output, exact: true, guess }
    }

    fn choices(&self) -> u64 {
        self.choices.max(1)
    }

    /// Images, files and sounds, in tokens.
    fn seen(&self) -> u64 {
        self.images.saturating_add(self.media).saturating_mul(IMAGE)
    }

    /// What a conversation takes around its texts; other endpoints have none.
    fn framing(&self, item: u64, answer: u64) -> u64 {
        match self.endpoint {
            Endpoint::Chat | Endpoint::Responses => {
                self.items.saturating_mul(item).saturating_add(answer)
            }
            _ => 0,
        }
    }
}

/// An image in tokens: what OpenAI's page says of 1024 x 1024 at high detail, and what it charged
/// for a 800 x 400 that it could not even load (recorded in 2026).
pub(super) const IMAGE: u64 = 765;

/// What the definition of OpenAI's web search adds to the prompt, in tokens (recorded: 292, 297).
const WEB_SEARCH: u64 = 292;
