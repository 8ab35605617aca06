//! The files of `tollgate batch`: requests in, results out, and what is told about the run.
//!
//! - [`input`] reads OpenAI Batch lines or raw bodies, one line at a time.
//! - [`target`] joins a base URL and the path of a line.
//! - [`output`] appends result lines, knows which are finished, and survives `kill -9`.
//! - [`report`] and [`progress`] say how it went and how it goes.
//!
//! Nothing here sends a request, waits for a limit or reads time.
//!
//! ```
//! use tollgate::batch::input::{Entry, Reader};
//! use tollgate::batch::outcome::{Answer, Outcome};
//! use tollgate::batch::output::Output;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().join("out.jsonl");
//! let lines = r#"{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"input":"Hi"}}"#;
//! let (mut output, done) = Output::open(&out, None)?;
//! for entry in Reader::new(lines.as_bytes(), "/v1/chat/completions") {
//!     let outcome = match entry? {
//!         Entry::Request(line) if done.contains(&line.custom_id) => continue,
//!         Entry::Request(line) => Outcome::succeeded(line.custom_id, Answer::new(200, "{}")),
//!         Entry::Bad(line) => line.into(),
//!     };
//!     output.write(&outcome)?;
//! }
//! output.finish()?;
//! # Ok(())
//! # }
//! ```

pub mod ids;
pub mod input;
mod lines;
pub mod outcome;
pub mod output;
pub mod progress;
pub mod report;
pub mod target;
mod waits;
