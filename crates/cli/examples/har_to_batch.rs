//! Turns recorded HTTP traffic (HAR 1.2, as browsers and proxies save it) into Batch lines.
//!
//! ```sh
//! cargo run -p paceline-cli --example har_to_batch -- FILE.har > requests.jsonl
//! ```
//!
//! Each `POST` with a JSON object as its body becomes a line: `custom_id` is `FILE-INDEX` (the
//! index of the entry, from 0), `url` the path and query of the entry's URL, `body` as recorded.
//! All other entries are skipped; their number is printed on stderr.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use paceline_cli::explain::har::{self, HarError, Request};
use serde::Serialize;
use serde_json::value::RawValue;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("har_to_batch: {error}");
            ExitCode::from(2)
        }
    }
}

/// The Batch lines of a recording and the number of skipped entries.
#[derive(Debug)]
pub(crate) struct Converted {
    /// One Batch line each, without newline.
    pub(crate) lines: Vec<String>,
    /// Entries without a JSON object to send.
    pub(crate) skipped: usize,
}

/// Turns a HAR file into Batch lines named after `stem`.
pub(crate) fn convert(har: impl io::Read, stem: &str) -> Result<Converted, HarError> {
    let (mut lines, mut entries) = (Vec::new(), 0);
    har::read(har, |entry| {
        lines.extend(batch_line(&entry.request, &format!("{stem}-{entries}")));
        entries += 1;
        ControlFlow::Continue(())
    })?;
    Ok(Converted { skipped: entries - lines.len(), lines })
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("no file given; usage: har_to_batch FILE.har")?;
    let path = std::path::PathBuf::from(path);
    let shown = path.display();
    let har = File::open(&path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let converted =
        convert(BufReader::new(har), &stem).map_err(|error| format!("{shown}: {error}"))?;
    let mut out = io::stdout().lock();
    for line in &converted.lines {
        writeln!(out, "{line}")?;
    }
    eprintln!("{} lines, {} entries skipped", converted.lines.len(), converted.skipped);
    Ok(())
}

fn batch_line(request: &Request, custom_id: &str) -> Option<String> {
    if request.method != "POST" {
        return None;
    }
    // A string of valid JSON holds no raw line break: line breaks occur only between tokens.
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let text: Vec<u8> = request.body.iter().copied().filter(|byte| !is_break(byte)).collect();
    let body: &RawValue = serde_json::from_slice(&text).ok()?;
    let uri: http::Uri = request.url.parse().ok()?;
    let url = uri.path_and_query()?.as_str();
    body.get().starts_with('{').then_some(())?;
    serde_json::to_string(&BatchLine { custom_id, method: "POST", url, body }).ok()
}

#[derive(Serialize)]
struct BatchLine<'a> {
    custom_id: &'a str,
    method: &'a str,
    url: &'a str,
    body: &'a RawValue,
}
