//! The tokens that a request is charged, and those that its usage reports.
//!
//! Derived from recorded `limit - remaining` values of OpenAI's headers in 2025 and 2026. Chat,
//! completions and embeddings are charged by characters; Responses by input tokens: 19 above the
//! reported usage, or 217 with functions, which is exact in 15 of 19 recordings. Three of the other
//! four are of reasoning models, which are charged 60 to 600 tokens more by an unknown rule.

use super::request::{Endpoint, Request};
use crate::settings::ChargeRule;
use crate::usage::SimulatedUsage;

impl ChargeRule {
    /// Returns the tokens that `request`, which will use `usage`, is charged on arrival.
    pub(super) fn tokens(self, request: &Request, usage: &SimulatedUsage) -> u64 {
        match self {
            Self::OpenAi => openai(request),
            Self::Usage => usage.input.saturating_add(usage.output),
        }
    }
}

/// Returns the tokens of the prompt as reported in the usage.
///
/// Never above OpenAI's charge for the same prompt.
pub(super) fn input_tokens(request: &Request) -> u64 {
    let prompt = &request.prompt;
    match request.endpoint {
        Endpoint::Responses | Endpoint::InputTokens => {
            let framing = RESPONSE_BASE + RESPONSE_ITEM * prompt.messages;
            prompt.text_tokens + prompt.tokens + framing + functions(request)
        }
        _ if prompt.characters > 0 => prompt.tokens + (prompt.characters / 4).max(1),
        _ => prompt.tokens,
    }
}

/// Returns the charge by OpenAI's rule, which is independent of the response.
fn openai(request: &Request) -> u64 {
    let prompt = &request.prompt;
    let text = prompt.characters.div_ceil(4) + prompt.tokens;
    let output = request.max_output.unwrap_or(0).saturating_mul(request.choices);
    match request.endpoint {
        Endpoint::Chat => (text + prompt.messages + CHAT_BASE).saturating_add(output),
        Endpoint::Completions => text.saturating_add(output),
        Endpoint::Embeddings => text,
        Endpoint::Responses | Endpoint::InputTokens if prompt.functions > 0 => {
            input_tokens(request) + WITH_FUNCTIONS
        }
        Endpoint::Responses | Endpoint::InputTokens => input_tokens(request) + WITHOUT_FUNCTIONS,
    }
}

/// Returns the tokens of the functions that the model may call.
fn functions(request: &Request) -> u64 {
    match request.prompt.functions {
        0 => 0,
        functions => request.prompt.schema + FUNCTIONS_BASE + FUNCTION * functions,
    }
}

/// Tokens of a chat besides one per message.
const CHAT_BASE: u64 = 1;

const RESPONSE_BASE: u64 = 3;
const RESPONSE_ITEM: u64 = 4;
const FUNCTIONS_BASE: u64 = 12;
const FUNCTION: u64 = 10;

/// The charge of a Responses request above its input tokens.
const WITHOUT_FUNCTIONS: u64 = 19;
const WITH_FUNCTIONS: u64 = 217;
