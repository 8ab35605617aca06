//! Recorded traffic, from the folder `$PACELINE_CORPUS`.

use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// One recorded request and its response.
#[derive(Debug)]
pub struct Recording {
    pub file: &'static str,
    pub index: usize,
    pub url: String,
    pub request: String,
    pub response: Vec<u8>,
    pub headers: HeaderMap,
    pub content_type: String,
    /// The year of the response, if a header or the body states it.
    pub year: Option<u64>,
    pub expected: Value,
}

impl Recording {
    pub fn path(&self) -> &str {
        self.url.split_once("api.openai.com").map_or(&self.url, |(_, path)| path)
    }
}

/// Reads the recordings in one file; `None` if `PACELINE_CORPUS` is not set.
pub fn entries(file: &'static str) -> Option<Vec<Recording>> {
    let Some(folder) = std::env::var_os("PACELINE_CORPUS") else {
        println!("skipped: PACELINE_CORPUS is not set");
        return None;
    };
    let path = PathBuf::from(folder).join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("PACELINE_CORPUS: {}: {error}", path.display()));
    let har: Value = serde_json::from_str(&text).expect("a HAR file is JSON");
    let entries = har["log"]["entries"].as_array().expect("a HAR file has entries");
    Some(entries.iter().enumerate().map(|(index, value)| entry(file, index, value)).collect())
}

/// Reads the recordings of all providers; `None` if `PACELINE_CORPUS` is not set.
pub fn all() -> Option<Vec<Recording>> {
    let all: Option<Vec<_>> = FILES.iter().map(|file| entries(file)).collect();
    Some(all?.into_iter().flatten().collect())
}

fn entry(file: &'static str, index: usize, value: &Value) -> Recording {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let content = &value["response"]["content"];
    let response = match content["encoding"].as_str() {
        Some("base64") => {
            BASE64_STANDARD.decode(text(&content["text"])).expect("a HAR file's base64")
        }
        _ => text(&content["text"]).into_bytes(),
    };
    let headers = headers(&value["response"]["headers"]);
    let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    Recording {
        file,
        index,
        url: text(&value["request"]["url"]),
        request: text(&value["request"]["postData"]["text"]),
        year: header("date")
            .and_then(|date| date.get(12..16)?.parse().ok())
            .or(year(&String::from_utf8_lossy(&response))),
        content_type: header("content-type").unwrap_or_default(),
        response,
        headers,
        expected: value["_expected"].clone(),
    }
}

fn headers(list: &Value) -> HeaderMap {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    let pair = |header: &Value| {
        let name = HeaderName::from_bytes(header["name"].as_str()?.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(header["value"].as_str()?).ok()?))
    };
    list.iter().filter_map(pair).collect()
}

/// Returns the year of `created` or `created_at`, which are in seconds since the Unix epoch.
fn year(response: &str) -> Option<u64> {
    let (_, rest) =
        response.split_once("\"created\":").or_else(|| response.split_once("\"created_at\":"))?;
    let rest = rest.trim_start();
    let created: u64 = rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()?;
    Some(1_970 + created / 31_556_952)
}

/// All files of the corpus.
const FILES: &[&str] = &[
    "anthropic.har",
    "azure.har",
    "bedrock-mantle.har",
    "bedrock.har",
    "cerebras.har",
    "cohere.har",
    "crusoe.har",
    "deepseek.har",
    "gemini.har",
    "groq.har",
    "heroku.har",
    "huggingface.har",
    "local.har",
    "mistral.har",
    "ollama.har",
    "openai.har",
    "openrouter.har",
    "snowflake.har",
    "together.har",
    "vertex.har",
    "voyage.har",
    "writer.har",
    "zai.har",
];
