//! `paceline explain`: explains the charges of recorded traffic.
//!
//! [`explain`] reads one recorded [`Entry`](har::Entry) as paceline reads live traffic. It returns the
//! charge that would be reserved, the usage reported in the response, the limits stated in the headers,
//! the class of an error, what a refusal says, and the delay before a retry. [`JsonLine`] formats an explanation as JSON,
//! [`TableRow`] as a row of a table. [`Summary`] reports the estimation errors of many explanations.
//! [`har`] reads the files.
//!
//! It sends nothing. Its output contains no header values, prompts or URL queries.
//!
//! ```
//! use std::ops::ControlFlow;
//! use paceline_cli::explain::{JsonLine, Summary, explain, har};
//!
//! let file = r#"{"log": {"entries": [{
//!     "request": {"method": "POST", "url": "https://api.openai.com/v1/chat/completions?key=s3cret",
//!         "postData": {"text": "{\"model\": \"gpt-4o\", \"messages\": [{\"role\": \"user\",
//!             \"content\": \"Say this is a test\"}]}"}},
//!     "response": {"status": 200,
//!         "headers": [{"name": "x-ratelimit-limit-tokens", "value": "30000"},
//!                     {"name": "x-ratelimit-remaining-tokens", "value": "29993"}],
//!         "content": {"text": "{\"usage\": {\"prompt_tokens\": 12, \"completion_tokens\": 9}}"}}
//! }]}}"#.replace("\n", " ");
//! let (mut lines, mut summary) = (Vec::new(), Summary::default());
//! har::read(file.as_bytes(), |entry| {
//!     let explanation = explain(&entry);
//!     summary.add(&explanation);
//!     lines.push(JsonLine::new("a.har", lines.len(), &explanation).to_string());
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(lines, [concat!(
//!     r#"{"file":"a.har","index":0,"provider":"openai","model":"gpt-4o","#,
//!     r#""charge":{"requests":1,"tokens":7,"input_tokens":12,"output_tokens":1024},"#,
//!     r#""usage":{"input":12,"output":9,"cache_read":0,"cache_write":0},"#,
//!     r#""limits":[{"dimension":"tokens","limit":30000,"remaining":29993,"reset_s":null,"window_s":60.0}],"#,
//!     r#""class":"ok","retry_after_s":null,"status":200,"error":null,"time":null,"refusal":null}"#,
//! )]);
//! assert!(summary.to_string().starts_with("1 exchange"));
//! # Ok::<(), har::HarError>(())
//! ```

mod explanation;
mod full_buckets;
pub mod har;
mod json_line;
mod relative_errors;
mod seconds;
mod summary;
mod table_row;

pub use explanation::{Explanation, explain};
pub use json_line::JsonLine;
pub use summary::Summary;
pub use table_row::{HEADING, TableRow};
