//! `tollgate batch`: a file of requests in, a file of results out, as fast as the limits allow.
//!
//! A [`Job`] composes the rest of the crate: its lines go through one
//! [`RateLimitLayer`](tollgate::middleware::RateLimitLayer) in the order of the input, so that every
//! model has its own queue; the layer [sends again](tollgate::middleware::retry) what fails in passing. [`Plan`] tells what a job would be, [`Ideal`] how long it takes at best.
//!
//! - [`input`] reads Batch lines of OpenAI, Anthropic or Gemini, or raw bodies, one line at a time.
//! - [`target`] joins a base URL and the path of a line.
//! - [`output`] appends result lines, knows which are finished, and survives `kill -9`.
//! - [`report`] and [`progress`] say how it went and how it goes.
//!
//! The files by themselves:
//!
//! ```
//! use tollgate_cli::batch::input::{Entry, Reader};
//! use tollgate_cli::batch::outcome::{Answer, Outcome};
//! use tollgate_cli::batch::output::Output;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().join("out.jsonl");
//! let lines = r#"{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"input":"Hi"}}"#;
//! let (mut output, done) = Output::open(&out, None)?;
//! for entry in Reader::new(lines.as_bytes(), "/v1/chat/completions") {
//!     let outcome = match entry? {
//!         Entry::Request(line) if done.contains(&line.custom_id) => continue,
//!         Entry::Request(line) => {
//!             Outcome::succeeded(line.custom_id, Answer::new(200, "{}")).with_hash(line.hash)
//!         }
//!         Entry::Bad(line) => line.into(),
//!     };
//!     output.write(&outcome)?;
//! }
//! output.finish()?;
//! # Ok(())
//! # }
//! ```

mod answered;
mod answers;
mod attempt;
mod changes;
mod client;
mod configured;
mod failures;
mod forecast;
mod gate;
mod ideal;
pub mod ids;
pub mod input;
mod intake;
mod job;
mod lines;
mod long_waits;
mod outage;
pub mod outcome;
pub mod output;
mod plan;
pub mod progress;
mod repeats;
pub mod report;
mod request_hash;
mod resume;
mod secrets;
mod shared;
mod stop;
mod tally;
pub mod target;

pub use changes::{Changes, OnChange, Resume};
pub(crate) use client::http_client;
pub use configured::configured;
pub use ideal::Ideal;
pub use job::{Ended, Job, JobError};
pub use plan::Plan;
pub use request_hash::RequestHash;
pub(crate) use secrets::Secrets;
pub use stop::{Halt, Stop};
