//! The formats and rules of providers: a request's charge, a response's usage, limits and errors.
//!
//! A [`Profile`] holds the rules of one provider. It reads
//! - a request into an [`Estimate`]: model, and the [`Cost`](paceline_limiter::quota::Cost) to reserve;
//! - a response body, as it streams through, into [`Scanned`]: its [`Usage`](paceline_limiter::quota::Usage), or
//!   the error in the stream of a 200;
//! - the headers of a response into [`LimitReading`]s and the delay before a retry;
//! - a status, headers and an error body into a [`Refusal`], a [`Class`] and an [`ApiError`].
//!
//! All functions are pure: they use no network, clock or locks. The only state is that of a [`Scanner`], which is
//! bounded, the list of custom profiles, and a [`PriceList`](price::PriceList). Waiting, retrying and counting
//! belong to `paceline_limiter`. No input causes a panic; unreadable input is reported
//! ([`Estimate::exact`]) or read as `None`.
//!
//! ```
//! use paceline_provider::{OPENAI, Scanner};
//! use paceline_limiter::quota::Dimension;
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
//! // OpenAI charges at admission: the actual usage has no effect.
//! let charge = OPENAI.charge(&estimate.cost, &usage);
//! assert_eq!(charge.amount(&Dimension::Tokens), 57);
//! ```
//!
//! Prompts are estimated by their characters. With the feature `tokenizer`, `Profile::with_tokenizer`
//! counts their texts exactly, for models whose vocabulary ships with the crate; the layer uses it with
//! `Http::new(OPENAI.with_tokenizer())`. It changes input tokens and the charges that depend on them, but not
//! OpenAI's charge for a chat, which counts characters.
//!
#![doc = include_str!("adding.md")]
//!
//! ```text
#![doc = include_str!("mistral.rs")]
//! ```

pub mod account_limits;
mod admission;
mod alias;
mod answer;
mod anthropic;
mod api;
mod azure;
mod bedrock;
mod cached_prompt;
mod charge;
mod class;
mod cohere;
mod compatible;
pub mod count_tokens;
mod custom_rules;
mod cut_streams;
mod date;
mod default_quota;
mod duration;
mod error;
mod estimate;
mod failure_charge;
mod free_path;
mod gemini;
mod groq;
mod hosted;
mod interned;
mod invalid_profile;
mod json_member;
mod limits;
mod local;
mod location;
mod lookup;
mod media;
mod mistral;
mod mode;
mod model_name;
mod openai;
mod operation;
pub mod price;
mod profile;
mod prompt_weights;
mod quota_table;
mod refusal;
mod request;
mod rules;
mod scanner;
pub mod seam;
mod terms;
#[cfg(feature = "tokenizer")]
mod tokenizer;
mod unit;
mod unknown_provider;
mod utilization;

pub use admission::AdmissionCharge;
pub use answer::InvalidAnswer;
pub use anthropic::{ANTHROPIC, VERTEX_ANTHROPIC};
pub use api::Api;
pub use azure::AZURE;
pub use bedrock::{BEDROCK, BEDROCK_MANTLE};
pub use charge::Charge;
pub use class::Class;
pub use cohere::COHERE;
pub use compatible::{COMPATIBLE, COMPATIBLE_USAGE};
pub use cut_streams::CutStreams;
pub use default_quota::DefaultQuota;
pub use error::{ApiError, ErrorRules};
pub use estimate::Estimate;
pub use failure_charge::FailureCharge;
pub use gemini::{GEMINI, VERTEX};
pub use groq::GROQ;
pub use hosted::{
    AI21, ARK, BASETEN, CEREBRAS, DASHSCOPE, DEEPINFRA, DEEPSEEK, FIREWORKS, GITHUB_MODELS,
    HUGGINGFACE, HYPERBOLIC, MINIMAX, MOONSHOT, NEBIUS, NVIDIA, OLLAMA_CLOUD, OPENROUTER,
    SAMBANOVA, TOGETHER, VOYAGE, WRITER, XAI, ZAI,
};
pub use invalid_profile::InvalidProfile;
pub use limits::{LimitHeader, LimitHeaders, LimitWindow, ResetFormat};
pub use local::{LLAMA_CPP, OLLAMA, VLLM};
pub use media::{ImageTokens, MediaTokens};
pub use mistral::MISTRAL;
pub use mode::{Mode, ModeField};
pub use openai::OPENAI;
pub use operation::Operation;
pub use profile::{LONGEST_DELAY, Profile};
pub use prompt_weights::PromptWeights;
pub use quota_table::QuotaTable;
pub use request::UnreadableRequest;
pub use rules::Rules;
pub use scanner::{ResponseField, Scanned, Scanner, TokenCount};
pub use terms::Terms;
pub use unit::Unit;
pub use unknown_provider::UnknownProvider;
pub use utilization::UtilizationHeaders;

pub use paceline_limiter::limiter::{LimitReading, LimitReadings, UtilizationReading};
pub use paceline_limiter::limiter::{Refusal, RefusalKind, RefusalScope};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
