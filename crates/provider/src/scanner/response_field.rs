use super::token_counts::TokenCount;

/// A field of a response body that states a token count: the keys from the root object down to it.
///
/// The body may be a JSON object, a list of objects, or a stream of them: server-sent events, NDJSON
/// or an AWS event stream. The path starts at each object anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseField {
    pub(super) path: &'static [&'static str],
    pub(super) value: FieldValue,
}

/// The meaning of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValue {
    Count(TokenCount),
    /// A count of a usage that replaces earlier ones.
    WholeCount(TokenCount),
    /// Such a count in an object that may be the first element of a list.
    ListedCount(TokenCount),
    /// An object that replaces earlier usage, even if it states no count.
    Object,
    /// A text, an object or `true` that only the last event of a stream has.
    End,
    Text(ErrorPart),
    /// An object that states an error.
    Error,
}

/// A part of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorPart {
    Code,
    Kind,
    Message,
    /// The code at the root. Parts at the root state an error only if another field indicates one.
    RootCode,
    RootKind,
    RootMessage,
    /// `object` at the root: `error` with older vLLM and Mistral.
    RootObject,
    /// MiniMax's status and its text, of which 0 is a success.
    StatusCode,
    StatusMessage,
    /// Not a part of an error: the encoded text in a message of Bedrock's.
    Bytes,
}

impl ResponseField {
    /// Returns a field that states a count. The count stays if later objects of a stream omit it.
    ///
    /// The path has at most 5 keys, each of 1 to 32 bytes without quotes and backslashes. A number
    /// above 10^15 is ignored.
    pub const fn count(path: &'static [&'static str], count: TokenCount) -> Self {
        Self { path, value: FieldValue::Count(count) }
    }

    /// Returns a field that states a count of a whole usage, which replaces all counts of earlier objects
    /// and of the headers.
    pub const fn whole(path: &'static [&'static str], count: TokenCount) -> Self {
        Self { path, value: FieldValue::WholeCount(count) }
    }

    /// Returns an object that is a whole usage, even if it states no count. The counts are other fields
    /// within it.
    pub const fn object(path: &'static [&'static str]) -> Self {
        Self { path, value: FieldValue::Object }
    }

    /// Returns a field as [`whole`](Self::whole) does, in whose path the first element of a list is read.
    pub(super) const fn listed(path: &'static [&'static str], count: TokenCount) -> Self {
        Self { path, value: FieldValue::ListedCount(count) }
    }

    /// Returns a field that only the last event of a stream has. In lists, the first element is read.
    pub(super) const fn end(path: &'static [&'static str]) -> Self {
        Self { path, value: FieldValue::End }
    }

    pub(super) const fn text(path: &'static [&'static str], part: ErrorPart) -> Self {
        Self { path, value: FieldValue::Text(part) }
    }
}

/// The fields of errors of all known providers.
pub(super) const ERRORS: &[ResponseField] = &[
    ResponseField { path: &["error"], value: FieldValue::Error },
    ResponseField { path: &["response", "error"], value: FieldValue::Error },
    ResponseField::text(&["error"], ErrorPart::Message),
    ResponseField::text(&["error", "message"], ErrorPart::Message),
    ResponseField::text(&["error", "code"], ErrorPart::Code),
    ResponseField::text(&["error", "type"], ErrorPart::Kind),
    ResponseField::text(&["error", "status"], ErrorPart::Kind),
    // The stream of Responses: `response.failed`.
    ResponseField::text(&["response", "error", "message"], ErrorPart::Message),
    ResponseField::text(&["response", "error", "code"], ErrorPart::Code),
    // The stream of Responses: `{"type": "error", "code": .., "message": ..}`.
    ResponseField::text(&["type"], ErrorPart::RootKind),
    ResponseField::text(&["__type"], ErrorPart::RootKind),
    ResponseField::text(&["object"], ErrorPart::RootObject),
    ResponseField::text(&["code"], ErrorPart::RootCode),
    ResponseField::text(&["message"], ErrorPart::RootMessage),
    ResponseField::text(&["Message"], ErrorPart::RootMessage),
    ResponseField::text(&["detail"], ErrorPart::RootMessage),
    ResponseField::text(&["response", "error", "type"], ErrorPart::Kind),
    // MiniMax.
    ResponseField::text(&["base_resp", "status_code"], ErrorPart::StatusCode),
    ResponseField::text(&["base_resp", "status_msg"], ErrorPart::StatusMessage),
    // Cohere v2: `message-end`.
    ResponseField::text(&["delta", "error"], ErrorPart::Message),
];

/// Checks that these fields can be looked for.
///
/// # Errors
/// The reason, and what to do.
pub(crate) fn check(fields: &[ResponseField]) -> Result<(), String> {
    if fields.len() > MAX_FIELDS {
        return Err(format!("{} fields; at most {MAX_FIELDS} can be read", fields.len()));
    }
    let is_key = |key: &&str| {
        (1..=MAX_KEY).contains(&key.len())
            && !key.contains(|c: char| c.is_control() || matches!(c, '"' | '\\'))
    };
    for ResponseField { path, .. } in fields {
        if path.is_empty() || path.len() >= MAX_DEPTH || !path.iter().all(is_key) {
            let limit = MAX_DEPTH - 1;
            return Err(format!(
                "path {path:?}: use 1 to {limit} keys of 1 to {MAX_KEY} bytes, without quotes and \
                 backslashes"
            ));
        }
    }
    Ok(())
}

/// One more than the longest path.
pub(super) const MAX_DEPTH: usize = 6;

/// The maximum length of a key in a path, in bytes.
pub(super) const MAX_KEY: usize = 32;

/// The maximum number of fields of a custom profile, with which the number of keys stays below
/// `MAX_MEMBERS`.
const MAX_FIELDS: usize = 20;
