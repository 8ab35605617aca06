use std::borrow::Cow;

use paceline::Key;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::error::{ApiError, invalid, unprocessable};
use paceline::middleware::ScopeKey;

/// The keys that a request is charged to, all or none; narrowest first.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct KeyList(Vec<KeyText>);

/// A key of a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct KeyText(String);

impl KeyList {
    /// Returns the keys, if their number is valid and each has at most `max_length` bytes.
    ///
    /// # Errors
    /// Returns an error that names the invalid key.
    pub(super) fn validate(self, max_length: usize) -> Result<Vec<Key>, ApiError> {
        let Self(keys) = self;
        match keys.len() {
            0 => {
                return Err(invalid("keys: must not be empty; name the keys to charge"));
            }
            1..=MAX_KEYS => {}
            count => {
                return Err(invalid(format!("keys: {count} keys; at most {MAX_KEYS} are allowed")));
            }
        }
        for (at, key) in keys.iter().enumerate() {
            key.validate(&format!("keys[{at}]"), max_length)?;
        }
        Ok(keys.into_iter().map(|KeyText(key)| key.into()).collect())
    }
}

impl KeyText {
    /// Returns the key, if it is not empty and has at most `max_length` bytes. `field` names the field in
    /// errors.
    pub(super) fn validate(&self, field: &str, max_length: usize) -> Result<&str, ApiError> {
        check_key(field, &self.0, max_length).map(|()| self.0.as_str())
    }
}

impl JsonSchema for KeyText {
    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }

    /// The maximum length is added with the components, because it is configurable.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1})
    }
}

impl JsonSchema for KeyList {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Keys".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": generator.subschema_for::<KeyText>(),
            "minItems": 1,
            "maxItems": MAX_KEYS,
        })
    }
}

/// Checks that a key is not empty and has at most `max_length` bytes.
///
/// # Errors
/// Returns an error that names the field.
pub(super) fn check_key(field: &str, key: &str, max_length: usize) -> Result<(), ApiError> {
    match key.len() {
        0 => Err(invalid(format!("{field}: must not be empty"))),
        length if length > max_length => {
            let detail = format!("{field}: {length} bytes; at most {max_length} are allowed");
            Err(unprocessable(detail))
        }
        _ => Ok(()),
    }
}

/// Returns the keys for the middleware's headers, which may contain them, because the client sent them.
pub(super) fn public_keys(keys: &[Key]) -> Vec<ScopeKey> {
    keys.iter().cloned().map(ScopeKey::public).collect()
}

/// The maximum number of keys of a request.
const MAX_KEYS: usize = 16;
