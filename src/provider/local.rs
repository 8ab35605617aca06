//! Servers of one's own: what they can do at a time is the limit.

use super::request::{Request, Weights};
use super::reserve::Reserved;
use super::rules::Rules;
use super::{Profile, compatible, openai};

/// Ollama, port 11434 or any host with its paths (`/api/chat`, `/api/generate`, `/api/embed`);
/// native and compatible.
///
/// - **Charge**: what it can do at a time is the limit: set
///   [`concurrency`](crate::quota::Quota::concurrency) to what it runs in parallel
///   (`OLLAMA_NUM_PARALLEL`). `Tokens` are the usage.
/// - **Limits**: no headers. **Quotas**: none.
pub const OLLAMA: Profile = Profile::new(&Rules {
    name: "ollama",
    urls: &[
        "ollama.com",
        "*:11434",
        "*/api/chat",
        "*/api/generate",
        "*/api/embed",
        "*/api/embeddings",
    ],
    ..RULES
});

/// vLLM, by name: it has no address of its own.
///
/// - **Charge**: requests in flight; `Tokens` are the usage, which it may state in every chunk of a
///   stream: the last one counts.
/// - **Limits**: no headers. **Quotas**: none.
pub const VLLM: Profile = Profile::new(&Rules { name: "vllm", ..RULES });

/// The server of llama.cpp: any host with its paths (`/completion`, `/infill`), else by name.
///
/// - **Charge**: requests in flight (its `--parallel` slots); `Tokens` are the usage, or `timings`
///   where that is all it states.
/// - **Limits**: no headers. **Quotas**: none.
pub const LLAMA_CPP: Profile =
    Profile::new(&Rules { name: "llama-cpp", urls: &["*/completion", "*/infill"], ..RULES });

const RULES: Rules = Rules {
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    ..compatible::RULES
};

/// Recorded: 250 to 600 tokens to introduce tools, by the model.
const WEIGHTS: Weights = Weights { functions: 300, schema: 6, ..openai::WEIGHTS };
