//! Recorded traffic: `$TOLLGATE_CORPUS` is the folder of the recordings.

use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tollgate::provider::{Profile, Scanned, Scanner};
use tollgate::quota::Usage;

/// One recorded request and its response.
pub(crate) struct Entry {
    pub(crate) file: &'static str,
    pub(crate) index: usize,
    pub(crate) url: String,
    pub(crate) request: String,
    pub(crate) response: Vec<u8>,
    pub(crate) headers: HeaderMap,
    pub(crate) content_type: String,
    /// The year of the response, where a header or the body tells it.
    pub(crate) year: Option<u64>,
    pub(crate) expected: Value,
}

impl Entry {
    pub(crate) fn path(&self) -> &str {
        self.url.split_once("api.openai.com").map_or(&self.url, |(_, path)| path)
    }

    pub(crate) fn usage(&self) -> Option<Option<Usage>> {
        let usage = self.expected.get("usage")?;
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        Some((!usage.is_null()).then(|| Usage {
            input: count("input"),
            output: count("output"),
            cache_read: count("cache_read"),
            cache_write: count("cache_write"),
        }))
    }

    pub(crate) fn scan(&self, profile: Profile, piece: impl FnMut() -> usize) -> Scanned {
        scan(profile, &self.content_type, &self.response, piece)
    }

    /// The profile that the URL tells.
    pub(crate) fn profile(&self) -> Profile {
        Profile::find(&self.url)
    }

    /// Reads the response with its headers.
    pub(crate) fn scan_as_sent(&self) -> Scanned {
        let mut scanner = Scanner::of(self.profile(), &self.headers);
        scanner.feed(&self.response);
        scanner.finish()
    }
}

/// Feeds a body in pieces of these sizes.
pub(crate) fn scan(
    profile: Profile,
    content_type: &str,
    mut body: &[u8],
    mut piece: impl FnMut() -> usize,
) -> Scanned {
    let mut scanner = Scanner::new(profile, Some(content_type));
    while !body.is_empty() {
        let (head, tail) = body.split_at(piece().min(body.len()));
        scanner.feed(head);
        body = tail;
    }
    scanner.finish()
}

/// The recordings of one provider, or `None` where no corpus is given.
pub(crate) fn entries(file: &'static str) -> Option<Vec<Entry>> {
    let Some(folder) = std::env::var_os("TOLLGATE_CORPUS") else {
        println!("left out: TOLLGATE_CORPUS is not set");
        return None;
    };
    let path = PathBuf::from(folder).join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("TOLLGATE_CORPUS: {}: {error}", path.display()));
    let har: Value = serde_json::from_str(&text).expect("a HAR file is JSON");
    let entries = har["log"]["entries"].as_array().expect("a HAR file has entries");
    Some(entries.iter().enumerate().map(|(index, value)| entry(file, index, value)).collect())
}

/// The recordings of all providers.
pub(crate) fn all() -> Option<Vec<Entry>> {
    let all: Option<Vec<_>> = FILES.iter().map(|file| entries(file)).collect();
    Some(all?.into_iter().flatten().collect())
}

fn entry(file: &'static str, index: usize, value: &Value) -> Entry {
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
    Entry {
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

/// From `created`, in seconds since the Unix epoch.
fn year(response: &str) -> Option<u64> {
    let (_, rest) =
        response.split_once("\"created\":").or_else(|| response.split_once("\"created_at\":"))?;
    let rest = rest.trim_start();
    let created: u64 = rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()?;
    Some(1_970 + created / 31_556_952)
}

#[test]
fn the_model_is_the_one_that_the_request_names() {
    let Some(entries) = all() else { return };
    let mut tally = Tally::default();
    for entry in &entries {
        let estimate = entry.profile().read_request(&entry.url, entry.request.as_bytes());
        let expected = entry.expected["model"].as_str();
        tally.count(entry, estimate.model.as_deref() == expected, || {
            format!("{:?}, but {expected:?}", estimate.model)
        });
    }
    tally.print("models");
    assert!(tally.total >= 1_200 && tally.misses.is_empty(), "{:#?}", tally.misses);
}

#[test]
fn the_usage_is_the_one_that_the_response_states() {
    let Some(entries) = all() else { return };
    let mut tally = Tally::default();
    for entry in &entries {
        let Some(expected) = entry.usage() else { continue };
        let usage = entry.scan_as_sent().usage;
        tally.count(entry, usage == expected, || format!("{usage:?}, but {expected:?}"));
    }
    tally.print("usages");
    assert!(tally.total >= 1_200 && tally.misses.is_empty(), "{:#?}", tally.misses);
}

#[test]
fn binary_event_streams_tell_their_usage_too() {
    let Some(entries) = entries("bedrock.har") else { return };
    let streams = entries.iter().filter(|entry| entry.usage().is_none());
    let silent: Vec<_> = streams
        .clone()
        .filter(|entry| entry.scan_as_sent().usage.is_none_or(|usage| usage.output == 0))
        .map(|entry| (entry.index, &entry.url))
        .collect();
    assert!(streams.count() >= 20 && silent.is_empty(), "{silent:?}");
}

/// How many were right, by provider.
#[derive(Default)]
struct Tally {
    total: usize,
    by_file: std::collections::BTreeMap<&'static str, (usize, usize)>,
    misses: Vec<String>,
}

impl Tally {
    fn count(&mut self, entry: &Entry, right: bool, why: impl FnOnce() -> String) {
        let (good, all) = self.by_file.entry(entry.file).or_default();
        *all += 1;
        *good += usize::from(right);
        self.total += 1;
        if !right {
            self.misses.push(format!("{} {}: {}", entry.file, entry.index, why()));
        }
    }

    fn print(&self, what: &str) {
        let right = self.total - self.misses.len();
        println!("{what}: {right} of {} right", self.total);
        for (file, (good, all)) in &self.by_file {
            println!("  {file}: {good} of {all}");
        }
    }
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
