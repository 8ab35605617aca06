//! Helpers: small recordings, and the command.

use std::ops::ControlFlow;
use std::process::Output;

use paceline_cli::explain::har::{self, Entry, HarError};
use paceline_cli::explain::{Explanation, JsonLine, explain};
use serde_json::{Value, json};

/// Returns an exchange: a chat request to OpenAI with this body, and its response.
pub(super) fn exchange(request: &Value, response: &Value) -> Value {
    entry(
        "https://api.openai.com/v1/chat/completions?key=s3cret",
        json!({"mimeType": "application/json", "text": request.to_string()}),
        json!({"status": 200, "headers": [], "content": {"text": response.to_string()}}),
    )
}

pub(super) fn entry(url: &str, post: Value, response: Value) -> Value {
    let mut entry = json!({
        "startedDateTime": "2025-06-01T12:00:00.000Z", "time": 0,
        "request": {"method": "POST", "url": url,
                    "headers": [{"name": "Authorization", "value": "Bearer s3cret"}]},
    });
    entry["request"]["postData"] = post;
    entry["response"] = response;
    entry
}

/// Returns a chat request with one message that OpenAI charges with 57 tokens.
pub(super) fn chat() -> Value {
    let messages = json!([{"role": "user", "content": "Say this is a test"}]);
    json!({"model": "gpt-4o", "max_tokens": 50, "messages": messages})
}

pub(super) fn usage(input: u64, output: u64) -> Value {
    json!({"usage": {"prompt_tokens": input, "completion_tokens": output}})
}

pub(super) fn har(entries: &[Value]) -> String {
    json!({"log": {"version": "1.2", "creator": {"name": "x"}, "entries": entries}}).to_string()
}

/// Returns the entries of a text, and the result of reading it.
pub(super) fn read(text: impl AsRef<[u8]>) -> (Vec<Entry>, Result<(), HarError>) {
    let mut entries = Vec::new();
    let ended = har::read(text.as_ref(), |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    });
    (entries, ended)
}

/// Reads a HAR file with one entry.
pub(super) fn read_one(entry: &Value) -> Entry {
    let (mut entries, ended) = read(har(std::slice::from_ref(entry)));
    assert_eq!((entries.len(), ended), (1, Ok(())));
    entries.remove(0)
}

pub(super) fn explained(entry: &Value) -> Explanation {
    explain(&read_one(entry))
}

pub(super) fn line(entry: &Value) -> Value {
    let explanation = explained(entry);
    serde_json::from_str(&JsonLine::new("a.har", 0, &explanation).to_string())
        .expect("a line is JSON")
}

/// Returns the command `paceline explain` with these arguments, in this folder.
pub(super) fn paceline(folder: &std::path::Path, args: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.current_dir(folder).arg("explain").args(args);
    command
}

pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is UTF-8")
}

pub(super) fn lines(output: &Output) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).expect("every line is JSON");
    text(&output.stdout).lines().map(line).collect()
}
