//! Providers that speak OpenAI's format and charge by usage.

use super::profile::Rules;
use super::request::{Request, Weights};
use super::reserve::Reserved;
use super::{Profile, compatible, limits, openai};

/// DeepSeek, `api.deepseek.com`: limits requests in flight, not their rate; `Tokens` are the usage.
pub const DEEPSEEK: Profile =
    Profile::new(&Rules { name: "deepseek", urls: &["api.deepseek.com"], ..RULES });

/// Together, `api.together.xyz`.
pub const TOGETHER: Profile = Profile::new(&Rules {
    name: "together",
    urls: &["api.together.xyz", "api.together.ai"],
    limits: |headers| limits::TOGETHER.read(headers),
    ..RULES
});

/// Cerebras, `api.cerebras.ai`.
pub const CEREBRAS: Profile = Profile::new(&Rules {
    name: "cerebras",
    urls: &["api.cerebras.ai"],
    limits: |headers| limits::BY_NAME.read(headers),
    ..RULES
});

/// The router of Hugging Face, `router.huggingface.co`.
pub const HUGGINGFACE: Profile = Profile::new(&Rules {
    name: "huggingface",
    urls: &["router.huggingface.co", "api-inference.huggingface.co"],
    ..RULES
});

/// Writer, `api.writer.com`.
pub const WRITER: Profile =
    Profile::new(&Rules { name: "writer", urls: &["api.writer.com"], ..RULES });

/// Voyage, `api.voyageai.com`.
pub const VOYAGE: Profile =
    Profile::new(&Rules { name: "voyage", urls: &["api.voyageai.com"], ..RULES });

/// OpenRouter, `openrouter.ai`.
pub const OPENROUTER: Profile = Profile::new(&Rules {
    name: "openrouter",
    urls: &["openrouter.ai"],
    limits: |headers| limits::OPENROUTER.read(headers),
    ..RULES
});

const RULES: Rules = Rules {
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    ..compatible::RULES
};

/// Recorded: 250 to 600 tokens to introduce tools, by the model.
const WEIGHTS: Weights = Weights { functions: 300, schema: 6, ..openai::WEIGHTS };
