//! Recorded traffic: `$TOLLGATE_CORPUS` is the folder of the recordings.

use std::path::PathBuf;

use serde_json::Value;
use tollgate::provider::{OPENAI, Profile, Scanned, Scanner};
use tollgate::quota::Usage;

/// One recorded request and its response.
pub(super) struct Entry {
    pub(super) index: usize,
    pub(super) url: String,
    pub(super) request: String,
    pub(super) response: String,
    pub(super) content_type: String,
    /// The year of the response, where a header or the body tells it.
    pub(super) year: Option<u64>,
    pub(super) expected: Value,
}

impl Entry {
    pub(super) fn path(&self) -> &str {
        self.url.split_once("api.openai.com").map_or(&self.url, |(_, path)| path)
    }

    pub(super) fn usage(&self) -> Option<Option<Usage>> {
        let usage = self.expected.get("usage")?;
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        Some((!usage.is_null()).then(|| Usage {
            input: count("input"),
            output: count("output"),
            cache_read: count("cache_read"),
            cache_write: count("cache_write"),
        }))
    }

    pub(super) fn scan(&self, profile: Profile, piece: impl FnMut() -> usize) -> Scanned {
        scan(profile, &self.content_type, self.response.as_bytes(), piece)
    }
}

/// Feeds a body in pieces of these sizes.
pub(super) fn scan(
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
pub(super) fn entries(file: &str) -> Option<Vec<Entry>> {
    let Some(folder) = std::env::var_os("TOLLGATE_CORPUS") else {
        println!("left out: TOLLGATE_CORPUS is not set");
        return None;
    };
    let path = PathBuf::from(folder).join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("TOLLGATE_CORPUS: {}: {error}", path.display()));
    let har: Value = serde_json::from_str(&text).expect("a HAR file is JSON");
    let entries = har["log"]["entries"].as_array().expect("a HAR file has entries");
    Some(entries.iter().enumerate().map(|(index, value)| entry(index, value)).collect())
}

fn entry(index: usize, value: &Value) -> Entry {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let response = text(&value["response"]["content"]["text"]);
    let headers = value["response"]["headers"].as_array().map_or(&[][..], Vec::as_slice);
    let header = |name: &str| {
        let named = |h: &&Value| h["name"].as_str().is_some_and(|n| n.eq_ignore_ascii_case(name));
        headers.iter().find(named).map(|h| text(&h["value"]))
    };
    Entry {
        index,
        url: text(&value["request"]["url"]),
        request: text(&value["request"]["postData"]["text"]),
        year: header("date").and_then(|date| date.get(12..16)?.parse().ok()).or(year(&response)),
        response,
        content_type: header("content-type").unwrap_or_default(),
        expected: value["_expected"].clone(),
    }
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
    let Some(entries) = entries("openai.har") else { return };
    let mut named = 0;
    for entry in &entries {
        let estimate = OPENAI.read_request(entry.path(), entry.request.as_bytes());
        let expected = entry.expected["model"].as_str();
        assert_eq!(estimate.model.as_deref(), expected, "entry {}", entry.index);
        assert!(estimate.exact, "entry {}", entry.index);
        named += usize::from(expected.is_some());
    }
    assert!(named > 400, "{named} entries name a model");
}

#[test]
fn the_usage_is_the_one_that_the_response_states() {
    let Some(entries) = entries("openai.har") else { return };
    let mut stated = 0;
    for entry in &entries {
        let Some(expected) = entry.usage() else { continue };
        let scanned = entry.scan(OPENAI, || usize::MAX);
        assert_eq!(scanned.usage, expected, "entry {}: {}", entry.index, entry.url);
        stated += usize::from(expected.is_some());
    }
    assert!(stated > 350, "{stated} entries state a usage");
}
