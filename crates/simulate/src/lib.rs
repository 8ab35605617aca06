//! A simulated LLM provider that enforces rate limits, to test clients without an API key.
//!
//! [`Provider`] is a pure state machine: it takes bytes and a time, and returns a
//! [`SimulatedReply`]. [`SimulatedServer`] serves it over HTTP. [`Settings`] sets the limits, which
//! are enforced by a token bucket, a sliding window or a fixed window, separately for each model
//! name; spending is limited for all models of an API together ([`SpendLimit`]). Others may use a part of the
//! limits ([`OtherUse`]), and they may change ([`LimitChange`]). The provider speaks three API formats, selected
//! by the path of a request:
//!
//! | format | endpoints | limits |
//! |---|---|---|
//! | OpenAI | chat completions, completions, Responses and their `input_tokens`, embeddings; also under Azure's paths (`/openai/v1`, `/openai/deployments/NAME`) | requests per minute and day; tokens, charged at admission: characters / 4 plus `max_tokens` |
//! | Anthropic | Messages and their `count_tokens`, with prompt caching | requests per minute; input tokens, estimated at admission and then corrected, without cache reads; output tokens as they are generated |
//! | Gemini | `generateContent`, streamed as events or as one array, `countTokens`, `embedContent`, `batchEmbedContents`; also under Vertex's paths | requests per minute and per Pacific day; input tokens |
//!
//! Streams, headers and errors follow each format: OpenAI's 429 has `x-ratelimit-*` headers,
//! Anthropic's has `anthropic-ratelimit-*` and `retry-after`, and Gemini's has all details in its
//! body. A test runs the official Python SDKs of all three against it.
//!
//! The simulation is the reference for testing the limiter, so it shares no code with it: its
//! meters, charge rules and parsing are independent, exact, and simple rather than fast. It does
//! not interpret prompts, and accepts any API key. It calls a tool only if the request forces one
//! (`tool_choice`, Gemini's mode `ANY`), with the smallest arguments that the tool's schema allows. A request
//! for structured output (`response_format`, `text.format`, `output_config.format`, `responseSchema`) is
//! answered with the smallest JSON that its schema allows;
//! if the maximum output tokens are too few for the call, it answers with truncated text.
//!
//! ```
//! use paceline_simulate::{Provider, Settings};
//!
//! let mut provider = Provider::new(Settings::default().with_rpm(1));
//! let body = br#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}"#;
//! let first = provider.receive(0, "/v1/chat/completions", body);
//! let second = provider.receive(1_000_000_000, "/v1/chat/completions", body);
//! assert_eq!((first.status, second.status), (200, 429));
//! assert_eq!(second.header("retry-after"), Some("59"));
//!
//! let body = br#"{"model": "claude-sonnet-4-5", "max_tokens": 50,
//!                 "messages": [{"role": "user", "content": "Hello"}]}"#;
//! let message = provider.receive(2_000_000_000, "/v1/messages", body);
//! assert_eq!(message.header("anthropic-ratelimit-requests-remaining"), Some("0"));
//! ```

mod anthropic;
mod api_error;
mod cache;
mod clock;
mod clock_window;
mod cycle;
mod embedding;
mod exceeded_limit;
mod fault;
mod fixed_window;
mod format;
mod formats;
mod gemini;
mod in_flight;
mod limit_change;
mod limit_set;
mod limit_status;
mod limit_terms;
mod meter;
mod minimal_value;
mod models;
mod openai;
mod other_use;
mod paced_body;
mod provider;
mod random;
mod reply;
mod reply_log;
mod request_charge;
mod retry_after;
mod server;
mod settings;
mod sliding_log;
mod spend_limit;
mod stats;
mod text;
mod token_bucket;
mod token_count;
mod tool_call;
mod usage;

pub use cycle::Cycle;
pub use exceeded_limit::{ExceededLimit, LimitKind};
pub use fault::{Fault, FaultKind, FaultTarget};
pub use limit_change::LimitChange;
pub use other_use::OtherUse;
pub use provider::Provider;
pub use random::OutputSize;
pub use reply::{ReplyBody, SimulatedReply};
pub use retry_after::RetryAfter;
pub use server::SimulatedServer;
pub use settings::{ChargeRule, LimitAlgorithm, Settings, UnknownName};
pub use spend_limit::SpendLimit;
pub use stats::{Counters, Stats};
pub use usage::SimulatedUsage;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
