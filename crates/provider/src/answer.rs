//! Checks that the body of a success is an answer.

use std::fmt;

use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::scanner::LAST_EVENTS;

/// The error of a success whose body is not an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidAnswer {
    /// The body is empty or white space.
    Empty,
    /// The body is an HTML or XML page.
    Html,
    /// The body is text that is not JSON.
    NotJson,
    /// The JSON is invalid or truncated.
    BrokenJson {
        /// The parser's message.
        reason: String,
    },
    /// The JSON has no content: `null`, `{}`, `[]` or an empty string.
    NoContent {
        /// The JSON.
        json: &'static str,
    },
    /// The body has an `error`.
    Error,
    /// The stream ends before its last event.
    CutStream,
}

impl InvalidAnswer {
    /// Checks a whole body. If the `content-type` is audio, an image or another binary format, the body
    /// only must not be empty.
    ///
    /// ```
    /// use http::HeaderMap;
    /// use paceline_provider::InvalidAnswer;
    ///
    /// let check = |body: &str| InvalidAnswer::check(&HeaderMap::new(), body.as_bytes());
    /// assert_eq!(check(r#"{"choices": []}"#), Ok(()));
    /// assert_eq!(check("{}"), Err(InvalidAnswer::NoContent { json: "{}" }));
    /// assert_eq!(check("<html>Welcome</html>"), Err(InvalidAnswer::Html));
    /// ```
    ///
    /// # Errors
    /// [`InvalidAnswer`] with the reason.
    pub fn check(headers: &HeaderMap, body: &[u8]) -> Result<(), Self> {
        let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        match body.first() {
            None => Err(Self::Empty),
            _ if is_binary(kind) => Ok(()),
            Some(b'<') => Err(Self::Html),
            // `data`, `event`, `id`, `retry`, or a comment.
            Some(b'd' | b'e' | b'i' | b'r' | b':') => check_stream(body),
            Some(_) => check_json(body),
        }
    }
}

impl fmt::Display for InvalidAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the body is empty"),
            Self::Html => f.write_str("the body is HTML or XML, not JSON"),
            Self::NotJson => f.write_str("the body is not JSON"),
            Self::BrokenJson { reason } => write!(f, "the body is not valid JSON: {reason}"),
            Self::NoContent { json } => write!(f, "the body is `{json}`"),
            Self::Error => f.write_str("the body has an `error`"),
            Self::CutStream => f.write_str("the stream ends before its last event"),
        }
    }
}

impl std::error::Error for InvalidAnswer {}

/// Returns true for a content type of neither text nor JSON.
fn is_binary(kind: &str) -> bool {
    let starts = |start: &&str| {
        kind.get(..start.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
    };
    BINARY.iter().any(starts)
}

/// Checks consecutive JSON values: usually one, several in a stream of Ollama.
fn check_json(body: &[u8]) -> Result<(), InvalidAnswer> {
    let values = serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>();
    let mut ended = Ok(());
    for value in values {
        let value = value.map_err(|error| not_json(body, &error))?.get();
        if let Some(json) = EMPTY.iter().find(|empty| **empty == compact(value)) {
            return Err(InvalidAnswer::NoContent { json });
        }
        if !value.starts_with(['{', '[']) {
            return Err(InvalidAnswer::NotJson);
        }
        if value.starts_with('{') {
            let event = Event::read(value)?;
            ended = if event.done == Some(false) { Err(InvalidAnswer::CutStream) } else { Ok(()) };
        }
    }
    ended
}

/// Returns the error of a body that can't be parsed.
fn not_json(body: &[u8], error: &serde_json::Error) -> InvalidAnswer {
    match body[0] {
        b'{' | b'[' | b'"' => InvalidAnswer::BrokenJson { reason: error.to_string() },
        _ => InvalidAnswer::NotJson,
    }
}

/// Returns a value, without the white space between its brackets if they are empty.
fn compact(value: &str) -> &str {
    match value.as_bytes() {
        [b'{', between @ .., b'}'] if between.trim_ascii().is_empty() => "{}",
        [b'[', between @ .., b']'] if between.trim_ascii().is_empty() => "[]",
        _ => value,
    }
}

/// Checks server-sent events: the last event must be present and complete.
fn check_stream(body: &[u8]) -> Result<(), InvalidAnswer> {
    let Ok(text) = str::from_utf8(body) else { return Err(InvalidAnswer::NotJson) };
    let (mut stream, mut data) = (Stream::default(), String::new());
    for line in text.lines().chain([""]) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        match name {
            "" if value.is_empty() => stream.add(&std::mem::take(&mut data))?,
            "data" => data.push_str(value),
            "" | "event" | "id" | "retry" => {}
            _ if stream.has_data => return Err(InvalidAnswer::CutStream),
            _ => return Err(InvalidAnswer::NotJson),
        }
    }
    stream.end()
}

/// The state of a stream after some events.
#[derive(Default)]
struct Stream {
    has_data: bool,
    awaits_end: bool,
    has_ended: bool,
}

impl Stream {
    /// Adds an event with this data.
    fn add(&mut self, data: &str) -> Result<(), InvalidAnswer> {
        let data = data.trim();
        self.has_data |= !data.is_empty();
        self.has_ended |= data == "[DONE]";
        if data.starts_with('{') {
            let event = Event::read(data).map_err(|error| match error {
                InvalidAnswer::BrokenJson { .. } => InvalidAnswer::CutStream,
                other => other,
            })?;
            self.awaits_end |= event.awaits_end();
            self.has_ended |= event.is_end();
        }
        Ok(())
    }

    fn end(self) -> Result<(), InvalidAnswer> {
        match self {
            Self { has_data: false, .. } => Err(InvalidAnswer::Empty),
            Self { awaits_end: true, has_ended: false, .. } => Err(InvalidAnswer::CutStream),
            Self { .. } => Ok(()),
        }
    }
}

/// The members of an answer, or of an event of one, that are checked.
#[derive(Deserialize)]
struct Event<'a> {
    /// Anthropic, Cohere, OpenAI's Responses.
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    /// OpenAI and compatible servers.
    #[serde(borrow, default)]
    choices: Option<&'a RawValue>,
    /// Gemini.
    #[serde(borrow, default)]
    candidates: Option<&'a RawValue>,
    /// Ollama.
    #[serde(default, deserialize_with = "flag")]
    done: Option<bool>,
}

impl<'a> Event<'a> {
    fn read(object: &'a str) -> Result<Self, InvalidAnswer> {
        let event: Self = serde_json::from_str(object)
            .map_err(|error| InvalidAnswer::BrokenJson { reason: error.to_string() })?;
        match event.error.map_or("null", |error| compact(error.get())) {
            "null" | "false" | "{}" | "[]" | "\"\"" => Ok(event),
            _ => Err(InvalidAnswer::Error),
        }
    }

    /// Returns true for an event of a stream whose last event is known.
    fn awaits_end(&self) -> bool {
        let kind = self.kind.map_or("", RawValue::get);
        kind.starts_with("\"response.")
            || matches!(kind, "\"message_start\"" | "\"message-start\"")
            || self.choices.is_some()
            || self.candidates.is_some()
    }

    fn is_end(&self) -> bool {
        self.kind.is_some_and(|kind| LAST_EVENTS.contains(&kind.get().trim_matches('"').as_bytes()))
            || self.choices.is_some_and(|choices| has_finish_reason(choices.get()))
            || self.candidates.is_some_and(|candidates| has_finish_reason(candidates.get()))
    }
}

/// Returns true if a choice states its finish reason.
fn has_finish_reason(choices: &str) -> bool {
    let choices: Vec<Choice<'_>> = serde_json::from_str(choices).unwrap_or_default();
    choices.iter().any(|choice| choice.reason.is_some_and(|reason| reason.get() != "null"))
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default, rename = "finish_reason", alias = "finishReason")]
    reason: Option<&'a RawValue>,
}

fn flag<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<bool>, D::Error> {
    let value = <&RawValue>::deserialize(value)?;
    Ok(serde_json::from_str(value.get()).ok())
}

/// Prefixes of content types whose bodies are not read.
const BINARY: &[&str] = &[
    "audio/",
    "image/",
    "video/",
    "application/octet-stream",
    "application/pdf",
    "application/vnd.amazon.eventstream",
];

/// JSON without content.
const EMPTY: &[&str] = &["null", "{}", "[]", "\"\""];

/// The byte order mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, body: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().expect("a content type"));
        match InvalidAnswer::check(&headers, body.as_bytes()) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn invalid_answers_state_the_reason() {
        let json = "application/json";
        for (kind, body, expected) in [
            (json, "", "the body is empty"),
            (json, " \r\n\t", "the body is empty"),
            ("audio/mpeg", "", "the body is empty"),
            (json, "\u{feff}", "the body is empty"),
            ("text/html", "<!DOCTYPE html><p>Sign in", "the body is HTML or XML, not JSON"),
            (json, "\n<html></html>", "the body is HTML or XML, not JSON"),
            ("text/plain", "upstream connect error", "the body is not JSON"),
            ("text/plain", "error: no healthy upstream", "the body is not JSON"),
            ("text/plain", "OK", "the body is not JSON"),
            (json, r#"{"choices":[{"message":"#, "the body is not valid JSON: EOF while parsing"),
            (json, r#"{"a":1}}"#, "the body is not valid JSON: expected value"),
            (json, r#"[{"candidates":[]}"#, "the body is not valid JSON: EOF while parsing"),
            (json, "null", "the body is `null`"),
            (json, " { \n} ", "the body is `{}`"),
            (json, "[]", "the body is `[]`"),
            (json, "\"\"", "the body is `\"\"`"),
            (json, r#"{"error":"model is loading"}"#, "the body has an `error`"),
            (json, r#"{"error":true}"#, "the body has an `error`"),
            (json, "{\"done\":false}\n{\"done\":false}\n", "the stream ends before its last event"),
        ] {
            let error = check(kind, body);
            assert!(error.starts_with(expected), "{body}: {error}");
        }
    }

    #[test]
    fn answers_of_every_shape_are_valid() {
        let json = "application/json";
        for (kind, body) in [
            (json, r#"{"object":"chat.completion","choices":[]}"#),
            (json, r#"{"status":"completed","error":null,"output":[]}"#),
            (json, r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{}}"#),
            (json, r#"{"candidates":[{"finishReason":"SAFETY"}]}"#),
            (json, r#"[{"candidates":[]},{"candidates":[]}]"#),
            (json, "[[0.25,0.5]]"),
            (json, "{\"done\":false}\n{\"done\":true}\n"),
            (json, r#"{"done":"yes"}"#),
            ("", r#"{"a":1}"#),
            ("audio/mpeg", "ID3"),
            ("IMAGE/png", "<not html>"),
        ] {
            assert_eq!(check(kind, body), "ok", "{body}");
        }
    }

    #[test]
    fn stream_without_last_event_is_invalid() {
        let cut = "the stream ends before its last event";
        for (body, expected) in [
            ("data: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]\n\n", "ok"),
            ("data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n", "ok"),
            ("data: {\"choices\":[{\"finish_reason\":null}]}\n\n", cut),
            ("data: {\"choices\":[{\"delta\":{}}]}\n\ndata: {\"cho", cut),
            ("data: {\"choices\":[{\"delta\":{}}]}\n\nda", cut),
            (": keep-alive\n\n", "the body is empty"),
            ("event: message_start\ndata: {\"type\":\"message_start\"}\n\n", cut),
            (
                "event: x\ndata: {\"type\":\"message_start\"}\n\ndata: {\"type\":\"message_stop\"}\n\n",
                "ok",
            ),
            ("data: {\"type\":\"response.created\"}\n\n", cut),
            ("data: {\"type\":\"response.incomplete\"}\n\n", "ok"),
            ("data: {\"candidates\":[{\"content\":{}}]}\n\n", cut),
            ("data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n", "ok"),
            ("data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", "ok"),
            ("data: {\"error\":{\"message\":\"oh\"}}\n\n", "the body has an `error`"),
            ("data: {\ndata:  \"choices\":[]}\n\ndata:[DONE]", "ok"),
        ] {
            assert_eq!(check("text/event-stream", body), expected, "{body}");
        }
    }
}
