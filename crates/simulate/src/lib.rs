//! A provider that enforces its limits, so that a client can be judged without an API key.
//!
//! [`Provider`] is the pure state machine: bytes and a time in, a [`SimulatedReply`] out. [`SimulatedServer`] puts it
//! behind real HTTP. [`Settings`] says what it enforces, by token bucket, sliding or fixed window,
//! for each model name apart. It speaks three formats at once; which of them a request is in, its
//! path tells:
//!
//! | format | answers | takes from its limits |
//! |---|---|---|
//! | OpenAI | chat completions, completions, Responses and their `input_tokens`, embeddings | requests per minute and day; tokens, all at admission: characters / 4 and `max_tokens`. At Azure's paths too (`/openai/v1`, `/openai/deployments/NAME`) |
//! | Anthropic | Messages and their `count_tokens`; prompts are cached | requests per minute; input at admission, estimated and corrected, cache reads left out; output as it is made |
//! | Gemini | `generateContent`, streamed as events or as one array, `countTokens`, `embedContent`, `batchEmbedContents`; at Vertex's paths too | requests per minute and Pacific day; tokens of the input alone |
//!
//! Streams, headers and errors are those of the format: a 429 is OpenAI's with `x-ratelimit-*`,
//! Anthropic's with `anthropic-ratelimit-*` and `retry-after`, or Gemini's, which says all in its
//! body. The official Python SDKs of all three take it for the real thing: a test runs them.
//!
//! It is the judge of the limiter, so it shares no code with it: its meters, its charge rules and
//! its parsing are its own, exact and simple rather than fast. It does not understand what it
//! is asked, and checks no key. It calls a tool where the request forces one (`tool_choice`, Gemini's
//! mode `ANY`), with the least that its schema asks for, and otherwise never; where the most output
//! tokens have no room for the call, the answer is a text, cut short.
//!
//! ```
//! use tollgate_simulate::{Provider, Settings};
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
mod fault;
mod fixed_window;
mod format;
mod gemini;
mod meter;
mod model_limits;
mod openai;
mod paced_body;
mod provider;
mod random;
mod refusal;
mod reply;
mod request_charge;
mod server;
mod settings;
mod sliding_log;
mod stats;
mod text;
mod token_bucket;
mod token_count;
mod tool_call;
mod usage;

pub use fault::{Failure, Fault};
pub use provider::Provider;
pub use random::OutputSize;
pub use refusal::{LimitKind, Refusal};
pub use reply::{ReplyBody, SimulatedReply};
pub use server::SimulatedServer;
pub use settings::{ChargeRule, LimitAlgorithm, Settings, UnknownName};
pub use stats::{Counters, Stats};
pub use usage::SimulatedUsage;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
