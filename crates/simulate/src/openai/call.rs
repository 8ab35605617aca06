//! A request, read.

use serde_json::Value;

use super::answer::Answer;
use super::charge::input_tokens;
use super::prompt::Prompt;
use super::tools::forced;
use super::{OpenAi, invalid, missing, mistyped};
use crate::bill::{Bill, Claim};
use crate::format::{self, Call, Format, LONGEST_OUTPUT, Made};
use crate::rejection::Rejection;
use crate::reply::ReplyBody;
use crate::settings::Charge;
use crate::tool::ToolCall;
use crate::usage::Usage;

/// What is asked for, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
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
    /// Which an answer repeats.
    pub(super) tools: Vec<Value>,
    /// Which an answer repeats, too.
    pub(super) tool_choice: Value,
    /// The call that it forces.
    pub(super) forced: Option<ToolCall>,
}

/// The kinds of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Chat,
    Completions,
    Embeddings,
    Responses,
    /// How many tokens the input of a Responses request has.
    InputTokens,
}

impl Request {
    /// Reads a request to `path`, with or without `/v1`, or as Azure has it: `/openai/v1`, or the
    /// model as `/openai/deployments/NAME`.
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, Rejection> {
        let (deployment, endpoint) = Endpoint::at(path)?;
        let body: Value = serde_json::from_slice(body).map_err(|_| not_json())?;
        let named = || body["model"].as_str().filter(|model| !model.is_empty());
        let model = deployment.or_else(named);
        let flag = |value: &Value| value.as_bool().unwrap_or(false);
        Ok(Self {
            endpoint,
            model: model.ok_or_else(no_model)?.to_owned(),
            prompt: endpoint.prompt(&body)?,
            inputs: inputs(&body["input"]),
            choices: choices(&body)?,
            max_output: endpoint.max_output(&body)?,
            asked_output: format::asked_output(&body).map_err(|name| mistyped(name, WHOLE))?,
            stream: flag(&body["stream"]) && endpoint.streams(),
            include_usage: flag(&body["stream_options"]["include_usage"]),
            base64: body["encoding_format"] == "base64",
            tools: body["tools"].as_array().cloned().unwrap_or_default(),
            tool_choice: body.get("tool_choice").cloned().unwrap_or_else(|| "auto".into()),
            forced: endpoint.calls_tools().then(|| forced(&body)).flatten(),
        })
    }
}

impl Call for Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn input(&self) -> u64 {
        if self.endpoint == Endpoint::InputTokens { 0 } else { input_tokens(self) }
    }

    fn choices(&self) -> u64 {
        self.choices
    }

    fn asked_output(&self) -> Option<u64> {
        self.asked_output.or_else(|| self.forced.as_ref().map(ToolCall::tokens))
    }

    fn output(&self, wanted: u64) -> u64 {
        match self.endpoint {
            Endpoint::Embeddings | Endpoint::InputTokens => 0,
            _ => wanted.min(self.max_output.unwrap_or(u64::MAX)).min(LONGEST_OUTPUT),
        }
    }

    fn bill(&self, usage: &Usage, charge: Charge) -> Bill {
        if self.endpoint == Endpoint::InputTokens {
            return Bill::default();
        }
        let tokens = Claim::at_once(charge.tokens(self, usage));
        Bill { requests: Claim::at_once(1), tokens, ..Bill::default() }
    }

    fn write(&self, made: &Made<'_>) -> (&'static str, ReplyBody) {
        let answer = Answer { call: self, made };
        match self.stream {
            true => (EVENTS, ReplyBody::Stream(answer.frames())),
            false => ("application/json", ReplyBody::Json(answer.json().to_string().into())),
        }
    }
}

impl Endpoint {
    /// The deployment that a path names, and its endpoint.
    fn at(path: &str) -> Result<(Option<&str>, Self), Rejection> {
        let plain = format::plain(path);
        let azure = plain.strip_prefix("/openai");
        let deployment = azure.and_then(|rest| {
            let rest = rest.strip_prefix("/deployments/")?;
            Some(rest.split_at(rest.find('/')?))
        });
        let (deployment, rest) = match deployment {
            Some((name, rest)) => (Some(name), rest),
            None => {
                let rest = azure.unwrap_or(plain);
                (None, rest.strip_prefix("/v1").unwrap_or(rest))
            }
        };
        let endpoint = match rest {
            "/chat/completions" => Self::Chat,
            "/completions" => Self::Completions,
            "/embeddings" => Self::Embeddings,
            "/responses" => Self::Responses,
            "/responses/input_tokens" => Self::InputTokens,
            _ => return Err(OpenAi.unknown("POST", plain)),
        };
        Ok((deployment, endpoint))
    }

    fn streams(self) -> bool {
        !matches!(self, Self::Embeddings | Self::InputTokens)
    }

    fn calls_tools(self) -> bool {
        matches!(self, Self::Chat | Self::Responses)
    }

    fn prompt(self, body: &Value) -> Result<Prompt, Rejection> {
        match self {
            Self::Chat => match &body["messages"] {
                Value::Array(messages) => Ok(Prompt::of_chat(messages)),
                Value::Null => Err(missing("messages")),
                _ => Err(mistyped("messages", "an array of objects")),
            },
            Self::Completions => Ok(Prompt::of_texts(&body["prompt"])),
            Self::Embeddings | Self::Responses | Self::InputTokens if body["input"].is_null() => {
                Err(missing("input"))
            }
            Self::Embeddings => Ok(Prompt::of_texts(&body["input"])),
            Self::Responses | Self::InputTokens => Ok(Prompt::of_responses(body)),
        }
    }

    fn max_output(self, body: &Value) -> Result<Option<u64>, Rejection> {
        match self {
            Self::Chat => match whole(&body["max_completion_tokens"], "max_completion_tokens")? {
                None => whole(&body["max_tokens"], "max_tokens"),
                max => Ok(max),
            },
            Self::Completions => whole(&body["max_tokens"], "max_tokens"),
            Self::Embeddings | Self::InputTokens => Ok(None),
            Self::Responses => whole(&body["max_output_tokens"], "max_output_tokens"),
        }
    }
}

fn not_json() -> Rejection {
    invalid(
        400,
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't \
         using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was \
         sent was not valid JSON.)",
    )
}

fn no_model() -> Rejection {
    invalid(400, "you must provide a model parameter").about("model")
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
        Some(_) => Err(mistyped("n", "an integer from 1 to 128")),
    }
}

fn whole(value: &Value, name: &'static str) -> Result<Option<u64>, Rejection> {
    match value {
        Value::Null => Ok(None),
        value => value.as_u64().map(Some).ok_or_else(|| mistyped(name, WHOLE)),
    }
}

const WHOLE: &str = "a non-negative integer";

/// OpenAI's bound of `n`.
const MOST_CHOICES: u64 = 128;

const EVENTS: &str = "text/event-stream; charset=utf-8";
