use std::borrow::Cow;

use compact_str::CompactString;
use percent_encoding::percent_decode_str;

use super::unreadable::UnreadableRequest;

/// The kinds of endpoint that are charged differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Endpoint {
    Chat,
    Completions,
    Responses,
    Embeddings,
    /// Anything else that takes text: moderations, images, speech.
    #[default]
    Other,
}

impl Endpoint {
    /// Returns the endpoint by the end of a [`normalized`] path; `None` if unknown.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let last = after_last(path, b'/');
        let verb = after_last(last, b':');
        Some(match verb {
            "completions" if path.ends_with("chat/completions") => Self::Chat,
            // Ends an upload of OpenAI's, without generating text.
            "complete" if path.rsplit('/').nth(2) == Some("uploads") => return None,
            "completions" | "complete" | "generate" => Self::Completions,
            "responses" => Self::Responses,
            "compact" if path.ends_with("responses/compact") => Self::Responses,
            "embeddings" | "embed" | "embedContent" | "batchEmbedContents" => Self::Embeddings,
            // Adds a message to a thread of OpenAI's, without generating an answer.
            "messages" if path.contains("/threads/") => Self::Other,
            "chat" | "messages" | "converse" | "converse-stream" => Self::Chat,
            "generateContent" | "streamGenerateContent" => Self::Chat,
            // Counts the tokens of a request to Claude on Vertex.
            _ if last == "count-tokens:rawPredict" => Self::Other,
            "rawPredict" | "streamRawPredict" => Self::Chat,
            "predict" | "rerank" => Self::Other,
            _ if COUNTS_TOKENS.contains(&verb) => Self::Other,
            _ => return None,
        })
    }

    /// Returns true if the endpoint answers with generated text.
    pub(crate) fn generates(self) -> bool {
        matches!(self, Self::Chat | Self::Completions | Self::Responses)
    }
}

/// Returns true if a normalized path counts the tokens of a request, which costs none of the limits of its model.
pub(crate) fn counts_tokens(path: &str) -> bool {
    let last = after_last(path, b'/');
    COUNTS_TOKENS.contains(&after_last(last, b':')) || last == "count-tokens:rawPredict"
}

/// The last segments of such paths, or the verbs in them.
const COUNTS_TOKENS: &[&str] = &["count_tokens", "countTokens", "computeTokens", "input_tokens"];

/// Returns true if a normalized path embeds each of a list of contents, which Gemini counts as so many requests.
pub(crate) fn embeds_list(path: &str) -> bool {
    path.ends_with(":batchEmbedContents")
}

/// Returns true if a normalized path runs a model whose kind only the body shows: Bedrock's `invoke`, Databricks'
/// `invocations`.
pub(super) fn invokes(path: &str) -> bool {
    matches!(after_last(path, b'/'), "invoke" | "invoke-with-response-stream" | "invocations")
}

/// Returns the model that a normalized path names, which takes precedence over the body's.
pub(super) fn model_of(path: &str) -> Option<CompactString> {
    if !path.as_bytes().split(|byte| *byte == b'/').any(precedes_model) {
        return None;
    }
    model_of_verb(path).or_else(|| model_of_segment(path))
}

/// Returns true if a model may follow a segment of this name. Most paths have no such segment and are
/// not searched.
fn precedes_model(name: &[u8]) -> bool {
    name.last_chunk::<5>().is_some_and(|end| end.eq_ignore_ascii_case(b"odels"))
        || BEFORE_MODEL.iter().any(|before| name.eq_ignore_ascii_case(before.as_bytes()))
}

/// Segments before a model, in addition to those that end in `models`.
const BEFORE_MODEL: &[&str] = &["model", "deployments", "engines", "serving-endpoints"];

/// Refuses a path in which servers may read different models: one with parameters, nested escapes, or
/// characters that no model has.
pub(super) fn check(path: &str) -> Result<(), UnreadableRequest> {
    if !path.bytes().any(|byte| b"%;\\".contains(&byte)) {
        return Ok(());
    }
    let is_odd = |byte: u8| byte <= b' ' || byte == 0x7F || b"%;\\?#".contains(&byte);
    match percent_decode_str(path).decode_utf8() {
        Ok(plain) if !plain.bytes().any(is_odd) => Ok(()),
        _ => Err(UnreadableRequest::path(ODD_PATH)),
    }
}

/// Returns the model or deployment in a path: `/model/NAME/converse` (Bedrock),
/// `/deployments/NAME/...` (Azure), `/engines/NAME/...` (OpenAI's first),
/// `/models/OWNER/NAME/predictions` (Replicate), `/serving-endpoints/NAME/invocations` (Databricks).
fn model_of_segment(path: &str) -> Option<CompactString> {
    let between = |before: &str, end: fn(&str) -> Option<usize>| {
        let (_, rest) = split(path, before)?;
        rest.get(..end(rest)?)
    };
    let name = between("/model/", |rest| rest.rfind('/'))
        .or_else(|| between("/deployments/", |rest| rest.find('/')))
        .or_else(|| between("/engines/", |rest| rest.find('/')))
        .or_else(|| between("/models/", |rest| rest.strip_suffix("/predictions").map(str::len)))
        .or_else(|| between("/serving-endpoints/", |rest| rest.find('/')))?;
    decoded(name)
}

/// Returns the model in a path that ends in a verb, `/models/NAME:generateContent` (Google).
fn model_of_verb(path: &str) -> Option<CompactString> {
    let (_, rest) = split(path, "odels/")?;
    let (name, verb) = rest.rsplit_once(':')?;
    let is_verb = VERBS.iter().any(|known| known.eq_ignore_ascii_case(verb));
    is_verb.then(|| decoded(name)).flatten()
}

/// Splits a path around the first occurrence of a part in any case, since some servers ignore case.
fn split<'p>(path: &'p str, part: &str) -> Option<(&'p str, &'p str)> {
    let mut windows = path.as_bytes().windows(part.len());
    let at = windows.position(|window| window.eq_ignore_ascii_case(part.as_bytes()))?;
    Some((path.get(..at)?, path.get(at + part.len()..)?))
}

/// Returns a path as servers read it: without query, empty segments and trailing slashes, and with decoded escapes
/// (`%3A` is a colon). Escapes of `%`, `?` and `#`, of spaces and control characters, and of bytes beyond ASCII stay;
/// [`decoded`] reads them in a name.
pub(super) fn normalized(path: &str) -> Cow<'_, str> {
    let path = without_query(path);
    let bytes = path.as_bytes();
    let is_plain = !bytes.contains(&b'%') && !bytes.windows(2).any(|pair| pair == b"//");
    if is_plain { Cow::Borrowed(path) } else { Cow::Owned(rewritten(path)) }
}

fn rewritten(path: &str) -> String {
    let mut plain = unescaped(path);
    while plain.contains("//") {
        plain = plain.replace("//", "/");
    }
    plain.truncate(plain.trim_end_matches('/').len());
    plain
}

/// Returns a path as servers read it, without its query; `None` if servers may read it differently.
pub(crate) fn plain(path: &str) -> Option<String> {
    let path = without_query(path);
    check(path).ok().map(|()| normalized(path).into_owned())
}

fn unescaped(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        let byte = rest.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let is_decoded = |byte: &u8| byte.is_ascii_graphic() && !b"%?#".contains(byte);
        let (letter, end) = match byte.filter(is_decoded) {
            Some(byte) => (char::from(byte), at + 3),
            None => ('%', at + 1),
        };
        plain.push_str(&rest[..at]);
        plain.push(letter);
        rest = &rest[end..];
    }
    plain.push_str(rest);
    plain
}

fn decoded(name: &str) -> Option<CompactString> {
    let name = percent_decode_str(name).decode_utf8().ok()?;
    (!name.is_empty()).then(|| name.into())
}

/// Returns a path without its query and trailing slashes.
fn without_query(path: &str) -> &str {
    let end = path.bytes().position(|byte| matches!(byte, b'?' | b'#'));
    path[..end.unwrap_or(path.len())].trim_end_matches('/')
}

/// Returns the part after the last of these bytes, which are ASCII; the whole text if it has none.
fn after_last(text: &str, separator: u8) -> &str {
    let at = text.bytes().rposition(|byte| byte == separator);
    &text[at.map_or(0, |at| at + 1)..]
}

const ODD_PATH: &str = "ambiguous: it has `;`, `\\`, a space, a nested escape or invalid UTF-8; leave these \
                        out";

/// Verbs in Google's paths.
const VERBS: &[&str] = &[
    "generateContent",
    "streamGenerateContent",
    "embedContent",
    "batchEmbedContents",
    "asyncBatchEmbedContent",
    "batchGenerateContent",
    "countTokens",
    "computeTokens",
    "predict",
    "predictLongRunning",
    "rawPredict",
    "streamRawPredict",
    "generateMessage",
    "generateText",
    "generateAnswer",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalized_path_has_escapes_decoded_once() {
        for (path, expected) in [
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("/mod%65ls/a%3AgenerateContent", "/models/a:generateContent"),
            ("/a%2Fb%3fc%23%2541", "/a/b%3fc%23%2541"),
            ("//v1%2F/chat///completions/", "/v1/chat/completions"),
            ("/v1/chat/completions/?a=%2F//#b", "/v1/chat/completions"),
            ("/v1/chat%2F%2Fcompletions%2F?a", "/v1/chat/completions"),
            ("//?", ""),
            ("/%zz%4%+1%C3%A9%", "/%zz%4%+1%C3%A9%"),
        ] {
            assert_eq!(normalized(path), expected);
        }
        let path = normalized("/mod%65l/a%2541%2Fb/conv%65rse");
        assert_eq!(model_of_segment(&path).as_deref(), Some("a%41/b"));
    }
}
