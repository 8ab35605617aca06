//! `paceline batch`: sends a file of requests as fast as the limits allow.
//!
//! A [`Job`] sends its lines through one [`RateLimitLayer`](paceline::middleware::RateLimitLayer)
//! in input order, so that every model has its own queue; the layer
//! [retries](paceline::middleware::retry) transient failures. [`Plan`] estimates a job, [`Ideal`]
//! its shortest possible duration.
//!
//! - [`input`] reads Batch lines of OpenAI, Anthropic or Gemini, or raw bodies, one line at a time.
//! - [`target`] joins a base URL and the path of a line.
//! - [`output`] appends result lines, detects finished ones, and survives `kill -9`.
//! - [`report`] and [`progress`] present results and progress.
//!
//! Reading an input and writing an output:
//!
//! ```
//! use paceline_cli::batch::input::{ParsedLine, Reader};
//! use paceline_cli::batch::outcome::{BatchResponse, Outcome};
//! use paceline_cli::batch::output::Output;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().join("out.jsonl");
//! let lines = r#"{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"input":"Hi"}}"#;
//! let (mut output, done) = Output::open(&out, None)?;
//! for line in Reader::new(lines.as_bytes(), "/v1/chat/completions") {
//!     let outcome = match line? {
//!         ParsedLine::Request(line) if done.contains(&line.custom_id) => continue,
//!         ParsedLine::Request(line) => {
//!             Outcome::succeeded(line.custom_id, BatchResponse::new(200, "{}")).with_hash(line.hash)
//!         }
//!         ParsedLine::Invalid(line) => line.into(),
//!     };
//!     output.write(&outcome)?;
//! }
//! output.finish()?;
//! # Ok(())
//! # }
//! ```

mod attempt;
mod changes;
mod client;
mod configured;
mod failures;
mod forecast;
mod ideal;
pub mod ids;
pub mod input;
mod input_queue;
mod job;
mod job_context;
mod learned_report;
mod lines;
mod long_waits;
mod outages;
pub mod outcome;
pub mod output;
mod plan;
pub mod progress;
mod quotes;
mod received_response;
pub mod report;
mod request_hash;
mod response_policy;
mod resume;
mod run_stats;
mod secrets;
mod stop;
pub mod target;

pub use changes::{Changes, OnChange, Resume};
pub(crate) use client::http_client;
pub use configured::configured;
pub use ideal::Ideal;
pub use job::{Job, JobError, RunResult};
pub use plan::Plan;
pub use request_hash::RequestHash;
pub(crate) use secrets::Secrets;
pub use stop::{Halt, Stop};
