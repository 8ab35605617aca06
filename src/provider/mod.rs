//! What a provider's bytes mean: a request's charge, a response's usage, limits and errors.
//!
//! A [`Profile`] is one provider's set of rules, a value that is copied freely: a built-in one, or one
//! that is [`like`](Profile::like) it under a name and at a base URL of its own. It reads
//! - a request into an [`Estimate`]: model, and the [`Cost`](crate::quota::Cost) to reserve;
//! - a response, as it passes, into [`Scanned`]: its [`Usage`](crate::quota::Usage), or the error
//!   that a 200 carried in its stream;
//! - the headers of a response into [`LimitReading`]s and a delay before the next try;
//! - a status and an error body into a [`Class`] and an [`ApiError`].
//!
//! Everything here is a pure function of its arguments: no network, no clock, no lock, no state but
//! the [`Scanner`]'s own, which is bounded, and the names and base URLs of profiles that were made. Waiting, retrying and counting down belong to
//! [`limiter`](crate::limiter); nothing here decides whether a request may go. Bytes come from
//! outside: whatever they are, nothing panics, and what can't be read says so
//! ([`Estimate::exact`]) or is `None`.
//!
//! ```
//! use tollgate::provider::{OPENAI, Scanner};
//! use tollgate::quota::Dimension;
//!
//! let body = br#"{"model": "gpt-4o", "max_tokens": 50,
//!                 "messages": [{"role": "user", "content": "Say this is a test"}]}"#;
//! let estimate = OPENAI.read_request("/v1/chat/completions", body);
//! assert_eq!(estimate.model.as_deref(), Some("gpt-4o"));
//! // 18 bytes of text are 5 tokens; one message, one for the request, and `max_tokens`.
//! assert_eq!(estimate.cost.amount(&Dimension::Tokens), 57);
//!
//! let mut scanner = Scanner::new(OPENAI, Some("application/json"));
//! scanner.feed(br#"{"choices": [], "usage": {"prompt_tokens": 12, "#);
//! scanner.feed(br#""completion_tokens": 9}}"#);
//! let usage = scanner.finish().usage.expect("the response states its usage");
//! assert_eq!((usage.input, usage.output), (12, 9));
//!
//! // OpenAI charges at admission: what was really generated plays no part.
//! let charge = OPENAI.charge(&estimate.cost, &usage);
//! assert_eq!(charge.amount(&Dimension::Tokens), 57);
//! ```
//!
//! Prompts are estimated by their characters. With the feature `tokenizer`, `Profile::with_tokenizer`
//! counts their texts exactly, for models whose vocabulary ships with it: `Http::new(OPENAI.with_tokenizer())`
//! puts it into the layer. It changes input tokens, and what providers charge by them; never what
//! OpenAI charges a chat, which goes by characters whoever counts.
//!
#![doc = include_str!("adding.md")]
//!
//! ```text
#![doc = include_str!("mistral.rs")]
//! ```

mod answer;
mod anthropic;
mod api;
mod azure;
mod bedrock;
mod class;
mod cohere;
mod compatible;
pub mod count_tokens;
mod custom;
mod date;
mod default_quota;
#[doc(hidden)]
pub mod duration;
mod error;
mod estimate;
mod gemini;
mod groq;
mod hosted;
mod limits;
mod local;
mod media;
mod member;
mod mistral;
mod openai;
mod operation;
mod place;
mod profile;
mod quota_table;
#[cfg_attr(not(feature = "requests"), expect(dead_code, reason = "only `read_request` reads them"))]
mod request;
mod reserve;
mod retry;
mod rules;
mod scanner;
mod terms;
#[cfg(feature = "tokenizer")]
mod tokenizer;
mod unknown;
mod usage;

pub use answer::InvalidAnswer;
pub use anthropic::{ANTHROPIC, VERTEX_ANTHROPIC};
pub use api::Api;
pub use azure::AZURE;
pub use bedrock::BEDROCK;
pub use class::Class;
pub use cohere::COHERE;
pub use compatible::{COMPATIBLE, COMPATIBLE_USAGE};
pub use custom::InvalidProfile;
pub use default_quota::DefaultQuota;
pub use error::ApiError;
pub use estimate::Estimate;
#[cfg(feature = "tower")]
pub(crate) use estimate::OutputGuess;
pub use gemini::{GEMINI, VERTEX};
pub use groq::GROQ;
pub use hosted::{CEREBRAS, DEEPSEEK, HUGGINGFACE, OPENROUTER, TOGETHER, VOYAGE, WRITER};
pub use limits::{LimitReading, LimitReadings};
pub use local::{LLAMA_CPP, OLLAMA, VLLM};
pub use mistral::MISTRAL;
pub use openai::OPENAI;
pub use operation::Operation;
pub use profile::Profile;
pub use quota_table::QuotaTable;
pub use request::UnreadableRequest;
pub use retry::LONGEST_DELAY;
pub use scanner::{Scanned, Scanner};
pub use terms::Terms;
pub use unknown::UnknownProvider;
