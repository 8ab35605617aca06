//! A provider that enforces its limits, so that a client can be judged without an API key.
//!
//! [`Provider`] is the pure state machine: bytes and a time in, a [`Reply`] out. It speaks
//! OpenAI's chat completions, completions, embeddings and Responses, as JSON and as server-sent
//! events, and refuses with OpenAI's 429. [`Server`] puts it behind real HTTP. [`Settings`] says
//! what it enforces: requests and tokens per minute, requests per day, by token bucket, sliding
//! or fixed window, for each model name apart.
//!
//! It is the judge of the limiter, so it shares no code with it: its meters, its charge rule and
//! its parsing are its own, exact and simple rather than fast. It does not understand what it
//! is asked, checks no key, and knows no provider but OpenAI.
//!
//! ```
//! use tollgate::simulate::{Provider, Settings};
//!
//! let mut provider = Provider::new(Settings::default().with_rpm(1));
//! let body = br#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}"#;
//! let first = provider.receive(0, "/v1/chat/completions", body);
//! let second = provider.receive(1_000_000_000, "/v1/chat/completions", body);
//! assert_eq!((first.status, second.status), (200, 429));
//! assert_eq!(second.header("retry-after"), Some("59"));
//! ```

mod account;
mod anthropic;
mod bill;
mod bucket;
mod cache;
mod clock;
mod fault;
mod fixed;
mod format;
mod gemini;
mod log;
mod meter;
mod openai;
mod paced;
mod pieces;
mod provider;
mod refusal;
mod rejection;
mod reply;
mod server;
mod settings;
mod sizes;
mod stats;
mod text;

pub use fault::{Failure, Fault};
pub use provider::Provider;
pub use refusal::{LimitKind, Refusal};
pub use reply::{Reply, ReplyBody};
pub use server::Server;
pub use settings::{Algorithm, Charge, Settings, UnknownName};
pub use sizes::OutputSize;
pub use stats::{Counters, Stats};
