//! A request, read.

use serde_json::Value;

use super::prompt::Prompt;
use super::rejection::Rejection;

/// What is asked for, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) endpoint: Endpoint,
    pub(super) model: String,
    pub(super) prompt: Prompt,
    /// Texts to embed.
    pub(super) inputs: usize,
    pub(super) choices: u64,
    /// The most output tokens of one choice.
    pub(super) max_output: Option<u64>,
    /// The output tokens of one choice that `metadata.output_tokens` asks for.
    pub(super) asked_output: Option<u64>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) base64: bool,
}

/// The four kinds of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Chat,
    Completions,
    Embeddings,
    Responses,
}

impl Call {
    /// Reads a request to `path`, with or without `/v1`.
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, Rejection> {
        let endpoint = Endpoint::at(path)?;
        let body: Value = serde_json::from_slice(body).map_err(|_| not_json())?;
        let model = body["model"].as_str().filter(|model| !model.is_empty());
        let flag = |value: &Value| value.as_bool().unwrap_or(false);
        Ok(Self {
            endpoint,
            model: model.ok_or_else(no_model)?.to_owned(),
            prompt: endpoint.prompt(&body)?,
            inputs: inputs(&body["input"]),
            choices: choices(&body)?,
            max_output: endpoint.max_output(&body)?,
            asked_output: asked_output(&body)?,
            stream: flag(&body["stream"]) && endpoint != Endpoint::Embeddings,
            include_usage: flag(&body["stream_options"]["include_usage"]),
            base64: body["encoding_format"] == "base64",
        })
    }

    /// Tokens of each choice, if `wanted` is how long the model would go on.
    pub(super) fn output(&self, wanted: u64) -> u64 {
        match self.endpoint {
            Endpoint::Embeddings => 0,
            _ => wanted.min(self.max_output.unwrap_or(u64::MAX)).min(LONGEST_OUTPUT),
        }
    }
}

impl Endpoint {
    fn at(path: &str) -> Result<Self, Rejection> {
        let plain = path.trim_end_matches('/');
        match plain.strip_prefix("/v1").unwrap_or(plain) {
            "/chat/completions" => Ok(Self::Chat),
            "/completions" => Ok(Self::Completions),
            "/embeddings" => Ok(Self::Embeddings),
            "/responses" => Ok(Self::Responses),
            _ => Err(unknown_url("POST", path)),
        }
    }

    fn prompt(self, body: &Value) -> Result<Prompt, Rejection> {
        match self {
            Self::Chat => match &body["messages"] {
                Value::Array(messages) => Ok(Prompt::of_chat(messages)),
                Value::Null => Err(Rejection::missing("messages")),
                _ => Err(Rejection::mistyped("messages", "an array of objects")),
            },
            Self::Completions => Ok(Prompt::of_texts(&body["prompt"])),
            Self::Embeddings | Self::Responses if body["input"].is_null() => {
                Err(Rejection::missing("input"))
            }
            Self::Embeddings => Ok(Prompt::of_texts(&body["input"])),
            Self::Responses => Ok(Prompt::of_responses(body)),
        }
    }

    fn max_output(self, body: &Value) -> Result<Option<u64>, Rejection> {
        match self {
            Self::Chat => match whole(&body["max_completion_tokens"], "max_completion_tokens")? {
                None => whole(&body["max_tokens"], "max_tokens"),
                max => Ok(max),
            },
            Self::Completions => whole(&body["max_tokens"], "max_tokens"),
            Self::Embeddings => Ok(None),
            Self::Responses => whole(&body["max_output_tokens"], "max_output_tokens"),
        }
    }
}

/// 404: nothing answers to this method and path.
pub(super) fn unknown_url(method: &str, path: &str) -> Rejection {
    Rejection::new(404, format!("Invalid URL ({method} {path})"))
}

fn not_json() -> Rejection {
    Rejection::new(
        400,
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't \
         using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was \
         sent was not valid JSON.)",
    )
}

fn no_model() -> Rejection {
    Rejection::new(400, "you must provide a model parameter").about("model")
}

/// How many texts are embedded: one, unless an array holds other than token ids.
fn inputs(input: &Value) -> usize {
    match input {
        Value::Array(texts) if texts.first().is_some_and(|text| !text.is_number()) => texts.len(),
        _ => 1,
    }
}

fn choices(body: &Value) -> Result<u64, Rejection> {
    match whole(&body["n"], "n")? {
        None => Ok(1),
        Some(n @ 1..=MOST_CHOICES) => Ok(n),
        Some(_) => Err(Rejection::mistyped("n", "an integer from 1 to 128")),
    }
}

/// `metadata.output_tokens`, a number or, as OpenAI's own metadata has it, a string.
fn asked_output(body: &Value) -> Result<Option<u64>, Rejection> {
    const NAME: &str = "metadata.output_tokens";
    match &body["metadata"]["output_tokens"] {
        Value::String(text) => match text.parse() {
            Ok(tokens) => Ok(Some(tokens)),
            Err(_) => Err(Rejection::mistyped(NAME, WHOLE)),
        },
        value => whole(value, NAME),
    }
}

fn whole(value: &Value, name: &'static str) -> Result<Option<u64>, Rejection> {
    match value {
        Value::Null => Ok(None),
        value => value.as_u64().map(Some).ok_or_else(|| Rejection::mistyped(name, WHOLE)),
    }
}

const WHOLE: &str = "a non-negative integer";

/// OpenAI's bound of `n`.
const MOST_CHOICES: u64 = 128;

/// The largest output of OpenAI's models: no request makes the simulation write more.
const LONGEST_OUTPUT: u64 = 128_000;
