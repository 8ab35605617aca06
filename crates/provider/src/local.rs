//! Model servers on the user's own machines, limited by their concurrency.

use crate::Profile;
use crate::api::Api;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;

/// Ollama, port 11434 or any host with its paths (`/api/chat`, `/api/generate`, `/api/embed`);
/// native and compatible.
///
/// - **Charge**: requests in flight: set [`concurrency`](paceline_limiter::quota::Quota::concurrency) to the
///   number that it runs in parallel (`OLLAMA_NUM_PARALLEL`). `Tokens` are the usage.
/// - **Models**: `Llama3.2`, `llama3.2:latest` and `library/llama3.2` are one (types/model/name.go in
///   github.com/ollama/ollama, read in November 2026).
/// - **Limits**: no headers. **Quotas**: none.
pub const OLLAMA: Profile = Profile::new(
    &local("ollama")
        .unifying_models()
        .urls(&["*:11434", "*/api/chat", "*/api/generate", "*/api/embed", "*/api/embeddings"])
        .api(Api::without_key().origin("http://127.0.0.1:11434")),
);

/// vLLM, found by name only: it has no standard address.
///
/// - **Charge**: requests in flight; `Tokens` are the usage, which it may state in every chunk of a
///   stream: the last one counts.
/// - **Limits**: no headers. **Quotas**: none.
pub const VLLM: Profile = Profile::new(&local("vllm").usage_on_request());

/// The server of llama.cpp: any host with its paths (`/completion`, `/infill`), else by name.
///
/// - **Charge**: requests in flight (its `--parallel` slots); `Tokens` are the usage, or `timings`
///   if it states no usage.
/// - **Limits**: no headers. **Quotas**: none.
pub const LLAMA_CPP: Profile = Profile::new(
    &local("llama-cpp")
        .urls(&["*/completion", "*/infill"])
        .api(Api::without_key().origin("http://127.0.0.1:8080")),
);

const fn local(name: &'static str) -> Rules {
    Rules::built_in(name).weights(PromptWeights::OPEN_MODELS)
}
