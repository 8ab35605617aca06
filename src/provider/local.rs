//! Servers of one's own: what they can do at a time is the limit.

use super::profile::Rules;
use super::request::{Request, Weights};
use super::reserve::Reserved;
use super::scanner::{Count, Field, Wanted};
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
    wanted: &Wanted::new(OLLAMA_FIELDS),
    ..RULES
});

/// vLLM, by name: it has no address of its own.
///
/// - **Charge**: requests in flight; `Tokens` are the usage, which it may state in every chunk of a
///   stream: the last one counts.
/// - **Limits**: no headers. **Quotas**: none.
pub const VLLM: Profile = Profile::new(&Rules { name: "vllm", ..RULES });

/// The server of llama.cpp, by name: it has no address of its own.
///
/// - **Charge**: requests in flight (its `--parallel` slots); `Tokens` are the usage, or `timings`
///   where that is all it states.
/// - **Limits**: no headers. **Quotas**: none.
pub const LLAMA_CPP: Profile =
    Profile::new(&Rules { name: "llama-cpp", wanted: &Wanted::new(LLAMA_CPP_FIELDS), ..RULES });

const RULES: Rules = Rules {
    reserve: |request: &Request| Reserved::by_usage(request, request.prompt_tokens(&WEIGHTS)),
    ..compatible::RULES
};

const OLLAMA_FIELDS: &[Field] = &[
    Field::count(&["prompt_eval_count"], Count::Input),
    Field::count(&["eval_count"], Count::Output),
    Field::count(&["usage", "prompt_tokens"], Count::Input),
    Field::count(&["usage", "completion_tokens"], Count::Output),
    Field::count(&["usage", "total_tokens"], Count::Total),
];

/// `usage` where it is asked for, else `timings`, which count what was not cached.
const LLAMA_CPP_FIELDS: &[Field] = &[
    Field::count(&["usage", "prompt_tokens"], Count::Input),
    Field::count(&["usage", "completion_tokens"], Count::Output),
    Field::count(&["usage", "total_tokens"], Count::Total),
    Field::count(&["timings", "prompt_n"], Count::OtherInput),
    Field::count(&["timings", "predicted_n"], Count::OtherOutput),
    Field::count(&["tokens_evaluated"], Count::Input),
    Field::count(&["tokens_predicted"], Count::Output),
];

/// Recorded: 250 to 600 tokens to introduce tools, by the model.
const WEIGHTS: Weights = Weights { functions: 300, schema: 6, ..openai::WEIGHTS };
