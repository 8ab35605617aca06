//! How many tokens a prompt has, asked of the provider itself: Gemini, Vertex, Anthropic, OpenAI.
//!
//! [`request`] makes the question out of the request whose prompt is to be counted, and [`Answer`]
//! reads what comes back, in pieces and within bounds. Neither sends anything nor knows a key: the
//! caller adds its own headers (`x-goog-api-key`, `x-api-key` and `anthropic-version`,
//! `authorization`) and sends with whatever client it has; `middleware::count_tokens` does it with
//! reqwest. The count is of the input alone, and asking is itself a request that the provider
//! limits.
//!
//! Sources: `models.countTokens` (ai.google.dev/api/tokens), `POST /v1/messages/count_tokens`
//! (docs.claude.com), `POST /v1/responses/input_tokens` (developers.openai.com/api/reference).
//!
//! ```
//! use tollgate::provider::{ANTHROPIC, count_tokens};
//!
//! let body = br#"{"model": "claude-haiku-4-5", "max_tokens": 50,
//!                 "messages": [{"role": "user", "content": "Hello"}]}"#;
//! let asked = count_tokens::request(ANTHROPIC, "https://api.anthropic.com/v1/messages", body)?;
//! assert_eq!(asked.uri(), "https://api.anthropic.com/v1/messages/count_tokens");
//!
//! let mut answer = count_tokens::Answer::new(http::StatusCode::OK);
//! answer.feed(br#"{"input_tokens": 8}"#)?;
//! assert_eq!(answer.finish()?, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod chat;
mod error;

use bytes::Bytes;
use http::{Request, header};
use serde_json::{Map, Value, json};

pub use answer::{Answer, LONGEST_ANSWER, LONGEST_ERROR};
pub use error::{CannotCount, CountTokensError};

use super::{ANTHROPIC, GEMINI, OPENAI, Profile, VERTEX};

/// The request that asks how many tokens the prompt of another one has: `url` and `body` are those
/// of the other, for which the profile is. The query of the URL, which may hold a key, is left out.
///
/// OpenAI's chat completions are counted as the same prompt in the format of its Responses, in which
/// the frame of a message may take a token more or less.
///
/// # Errors
/// [`CannotCount`] where the provider has no such endpoint for this kind of request, or where the
/// body can't be read.
pub fn request(profile: Profile, url: &str, body: &[u8]) -> Result<Request<Bytes>, CannotCount> {
    let no_endpoint = || CannotCount::NoEndpoint { provider: profile.name() };
    let url = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches('/');
    let body = || match serde_json::from_slice(body) {
        Ok(Value::Object(body)) => Ok(body),
        _ => Err(CannotCount::Unreadable),
    };
    let (url, body) = if profile == GEMINI || profile == VERTEX {
        let (model, _) = url.rsplit_once(':').ok_or_else(no_endpoint)?;
        let (_, name) = model.rsplit_once("models/").ok_or_else(no_endpoint)?;
        let count = if profile == GEMINI { whole(body()?, name) } else { part(body()?, GOOGLE) };
        (format!("{model}:countTokens"), count)
    } else if profile == ANTHROPIC && url.ends_with("/messages") {
        (format!("{url}/count_tokens"), part(body()?, MESSAGES))
    } else if profile == OPENAI && url.ends_with("/responses") {
        (format!("{url}/input_tokens"), part(body()?, RESPONSES))
    } else if let (true, Some(base)) = (profile == OPENAI, url.strip_suffix("/chat/completions")) {
        (format!("{base}/responses/input_tokens"), chat::as_responses(body()?)?)
    } else {
        return Err(no_endpoint());
    };
    Request::post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into())
        .map_err(|_| CannotCount::NoUrl)
}

/// Gemini takes the whole request, which must name its model again.
fn whole(mut body: Map<String, Value>, model: &str) -> Value {
    body.insert("model".into(), format!("models/{model}").into());
    json!({ "generateContentRequest": body })
}

/// What the endpoint knows; it refuses what it doesn't.
fn part(mut body: Map<String, Value>, members: &[&str]) -> Value {
    body.retain(|name, _| members.contains(&name.as_str()));
    body.into()
}

const GOOGLE: &[&str] =
    &["contents", "systemInstruction", "system_instruction", "tools", "generationConfig"];

const MESSAGES: &[&str] = &[
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "mcp_servers",
    "cache_control",
    "context_management",
    "output_config",
    "output_format",
];

const RESPONSES: &[&str] = &[
    "model",
    "input",
    "instructions",
    "conversation",
    "previous_response_id",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
];
