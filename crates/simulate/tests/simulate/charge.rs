//! The charge rule, compared with recorded charges of OpenAI.

use std::path::PathBuf;

use paceline_simulate::{ChargeRule, OutputSize, Settings};
use serde_json::{Value, json};

use super::{chat, post};

fn charged(path: &str, body: &Value) -> u64 {
    post(Settings::default(), path, body).charged
}

#[test]
fn max_tokens_are_charged_for_each_choice() {
    let mut body = chat("Tell me a joke about opentelemetry");
    let prompt = charged("/v1/chat/completions", &body);
    body["max_tokens"] = json!(50);
    body["n"] = json!(3);
    assert_eq!(charged("/v1/chat/completions", &body), prompt + 150);
    body["max_completion_tokens"] = json!(70);
    assert_eq!(charged("/v1/chat/completions", &body), prompt + 210);
}

#[test]
fn characters_are_counted_not_bytes() {
    let path = "/v1/chat/completions";
    assert_eq!(charged(path, &chat("日本語日本語日本語")), charged(path, &chat("ninechars")));
    assert_eq!(charged(path, &chat("🦀🦀🦀🦀")), charged(path, &chat("four")));
}

#[test]
fn output_is_charged_by_usage_rule_only() {
    let mut body = chat("Hello there");
    body["metadata"] = json!({"output_tokens": "700"});
    let openai = post(Settings::default(), "/v1/chat/completions", &body);
    let usage = Settings::default().with_charge(ChargeRule::Usage);
    let usage = post(usage, "/v1/chat/completions", &body);
    assert!(openai.charged < 10);
    assert_eq!(usage.charged, usage.usage.input + 700);
}

#[test]
fn reported_input_never_exceeds_prompt_charge() {
    let texts = ["", "a", "Hello", "日本語", "a b c d e f g h i j k l m n o p"];
    for text in texts {
        for (path, body) in [
            ("/chat/completions", chat(text)),
            ("/completions", json!({"model": "m", "prompt": text})),
            ("/embeddings", json!({"model": "m", "input": [text, [1, 2, 3]]})),
            ("/responses", json!({"model": "m", "input": text})),
        ] {
            let reply = post(Settings::default().with_output(OutputSize::Fixed(9)), path, &body);
            assert!(reply.usage.input <= reply.charged, "{path} {body}");
        }
    }
}

#[test]
fn text_requests_are_charged_as_recorded_since_2025() {
    let Some(recordings) = recordings() else { return };
    for (path, expected) in [("/chat/completions", 90), ("/completions", 20), ("/embeddings", 5)] {
        let errors = errors(&recordings, |r| r.path == path && r.year >= 2025 && !r.has_images());
        assert!(errors.count() >= expected, "{path}: only {} recordings", errors.count());
        println!("{path}: {}", errors.summary());
        assert!(errors.median() <= 1, "{path}: {}", errors.summary());
        assert!(errors.close() >= 0.8, "{path}: {}", errors.summary());
    }
}

#[test]
fn non_reasoning_responses_are_charged_as_recorded() {
    let Some(recordings) = recordings() else { return };
    let all = errors(&recordings, |r| r.path == "/responses");
    println!("/responses, all: {}", all.summary());
    let searches = |r: &Recording| r.body["tools"][0]["type"] == "web_search_preview";
    let plain = errors(&recordings, |r| {
        r.path == "/responses" && r.body["reasoning"].is_null() && !searches(r)
    });
    println!("/responses, neither reasoning nor searching: {}", plain.summary());
    assert!(plain.count() >= 15);
    assert!(plain.median() <= 1 && plain.close() >= 0.8, "{}", plain.summary());
}

#[test]
fn image_is_charged_as_recorded() {
    let Some(recordings) = recordings() else { return };
    let errors = errors(&recordings, |r| r.year >= 2025 && r.has_images());
    assert!(errors.count() >= 1 && errors.close() >= 1.0, "{}", errors.summary());
}

struct Recording {
    path: String,
    year: u32,
    body: Value,
    charged: u64,
}

impl Recording {
    fn of(entry: &Value) -> Option<Self> {
        let charged = entry["_expected"]["charged_tokens"].as_u64()?;
        let path = entry["request"]["url"].as_str()?.split("/v1").nth(1)?.to_owned();
        let body = serde_json::from_str(entry["request"]["postData"]["text"].as_str()?).ok()?;
        // "Tue, 31 Mar 2026 13:27:53 GMT"
        let year = entry["startedDateTime"].as_str()?.split(' ').nth(3)?.parse().ok()?;
        Some(Self { path, year, body, charged })
    }

    fn has_images(&self) -> bool {
        self.body["messages"].to_string().contains("image_url")
    }

    fn error(&self) -> u64 {
        charged(&self.path, &self.body).abs_diff(self.charged)
    }
}

/// The error of the charge rule for each recording in tokens, and whether the error is small.
struct Errors(Vec<(u64, bool)>);

fn errors(recordings: &[Recording], select: impl Fn(&Recording) -> bool) -> Errors {
    let selected = recordings.iter().filter(|r| select(r));
    // An error is close if it is at most 2 tokens or 2 %.
    let mut errors: Vec<_> =
        selected.map(|r| (r.error(), r.error() <= 2.max(r.charged / 50))).collect();
    errors.sort_unstable();
    Errors(errors)
}

impl Errors {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn median(&self) -> u64 {
        self.0[self.0.len() / 2].0
    }

    fn close(&self) -> f64 {
        self.0.iter().filter(|(_, close)| *close).count() as f64 / self.count() as f64
    }

    fn summary(&self) -> String {
        let worst = self.0.last().map_or(0, |(error, _)| *error);
        let (count, median, close) = (self.count(), self.median(), self.close() * 100.0);
        format!("{count} recordings, median error {median}, {close:.1} % close, worst {worst}")
    }
}

/// Returns OpenAI's recordings with a charge; `None` without a corpus.
fn recordings() -> Option<Vec<Recording>> {
    let Some(corpus) = std::env::var_os("PACELINE_CORPUS") else {
        println!("skipped: PACELINE_CORPUS is not set");
        return None;
    };
    let path = PathBuf::from(corpus).join("openai.har");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} can't be read: {error}", path.display()));
    let har: Value = serde_json::from_str(&text).expect("the recordings are JSON");
    let entries = har["log"]["entries"].as_array().expect("the recordings have entries");
    Some(entries.iter().filter_map(Recording::of).collect())
}
