//! Token counts of prompts by the provider's own endpoint: Gemini, Vertex, Anthropic, OpenAI.
//!
//! [`request`] converts a request into a count request, and [`Answer`] reads the response, in chunks and
//! in bounded memory. Neither sends anything or adds a key: the caller adds the headers
//! (`x-goog-api-key`, `x-api-key` and `anthropic-version`, `authorization`) and sends the request with
//! any client; `middleware::count_tokens` does so with reqwest. Only the input is counted, and the
//! provider limits count requests too.
//!
//! Sources: `models.countTokens` (ai.google.dev/api/tokens), `POST /v1/messages/count_tokens`
//! (docs.claude.com), `POST /v1/responses/input_tokens` (developers.openai.com/api/reference).
//!
//! ```
//! use paceline_provider::{ANTHROPIC, count_tokens};
//!
//! let body = br#"{"model": "claude-haiku-4-5", "max_tokens": 50,
//!                 "messages": [{"role": "user", "content": "Hello"}]}"#;
//! let request = count_tokens::request(ANTHROPIC, "https://api.anthropic.com/v1/messages", body)?;
//! assert_eq!(request.uri(), "https://api.anthropic.com/v1/messages/count_tokens");
//!
//! let mut answer = count_tokens::Answer::new(http::StatusCode::OK);
//! answer.feed(br#"{"input_tokens": 8}"#)?;
//! assert_eq!(answer.finish()?, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod chat;
mod error;
pub(crate) mod format;

use bytes::Bytes;
use http::{Request, header};
use serde_json::{Map, Value, json};

pub use answer::{Answer, LONGEST_ANSWER, LONGEST_ERROR};
pub use error::{CannotCount, CountTokensError};
pub use format::CountTokensFormat;

use crate::profile::Profile;

/// Returns the request that counts the prompt of the request with this URL and body to the profile's
/// provider. The query of the URL, which may hold a key, is left out.
///
/// OpenAI's chat completions are counted as the same prompt in the format of its Responses, where the
/// tokens around a message may differ by one.
///
/// # Errors
/// [`CannotCount`] if the provider has no such endpoint for this kind of request, or if the body can't
/// be read.
pub fn request(profile: Profile, url: &str, body: &[u8]) -> Result<Request<Bytes>, CannotCount> {
    let no_endpoint = || CannotCount::NoEndpoint { provider: profile.name() };
    let url = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches('/');
    let body = || match serde_json::from_slice(body) {
        Ok(Value::Object(body)) => Ok(body),
        _ => Err(CannotCount::Unreadable),
    };
    let format = profile.count_tokens_format().ok_or_else(no_endpoint)?;
    let (url, body) = match format {
        CountTokensFormat::Gemini | CountTokensFormat::Vertex => {
            let (model, _) = url.rsplit_once(':').ok_or_else(no_endpoint)?;
            let (_, name) = model.rsplit_once("models/").ok_or_else(no_endpoint)?;
            let body = match format {
                CountTokensFormat::Gemini => with_model(body()?, name),
                _ => with_members(body()?, CONTENTS),
            };
            (format!("{model}:countTokens"), body)
        }
        CountTokensFormat::Anthropic if url.ends_with("/messages") => {
            (format!("{url}/count_tokens"), with_members(body()?, MESSAGES))
        }
        CountTokensFormat::OpenAi if url.ends_with("/responses") => {
            (format!("{url}/input_tokens"), with_members(body()?, RESPONSES))
        }
        CountTokensFormat::OpenAi => {
            let base = url.strip_suffix("/chat/completions").ok_or_else(no_endpoint)?;
            (format!("{base}/responses/input_tokens"), chat::as_responses(body()?)?)
        }
        CountTokensFormat::Anthropic => return Err(no_endpoint()),
    };
    Request::post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into())
        .map_err(|_| CannotCount::InvalidUrl)
}

/// Returns Gemini's body: the whole request, with its model.
fn with_model(mut body: Map<String, Value>, model: &str) -> Value {
    body.insert("model".into(), format!("models/{model}").into());
    json!({ "generateContentRequest": body })
}

/// Returns the members that the endpoint accepts; it refuses others.
fn with_members(mut body: Map<String, Value>, members: &[&str]) -> Value {
    body.retain(|name, _| members.contains(&name.as_str()));
    body.into()
}

const CONTENTS: &[&str] =
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
