use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tollgate::Key;

use super::fault::{Fault, invalid, meaningless};
use tollgate::middleware::ScopeKey;

/// The keys that a request is charged to, all or none: the narrowest first.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct KeyList(Vec<KeyText>);

/// A key, as a request says it.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct KeyText(String);

impl KeyList {
    /// The keys, if there is one and not too many, each of them so long at most (bytes).
    ///
    /// # Errors
    /// Which one is wrong.
    pub(super) fn checked(self, longest: usize) -> Result<Vec<Key>, Fault> {
        let Self(keys) = self;
        match keys.len() {
            0 => {
                return Err(invalid("keys: is empty; name the key that the request is charged to"));
            }
            1..=MOST_KEYS => {}
            many => {
                return Err(invalid(format!("keys: {many} keys; at most {MOST_KEYS} are allowed")));
            }
        }
        for (at, key) in keys.iter().enumerate() {
            key.checked(&format!("keys[{at}]"), longest)?;
        }
        Ok(keys.into_iter().map(|KeyText(key)| key.into()).collect())
    }
}

impl KeyText {
    /// The key, if it is neither empty nor too long (bytes); `place` is where it was said.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn checked(&self, place: &str, longest: usize) -> Result<&str, Fault> {
        key_of(place, &self.0, longest).map(|()| self.0.as_str())
    }
}

impl JsonSchema for KeyText {
    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }

    /// How long it may be is known to who has the bounds.
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
            "maxItems": MOST_KEYS,
        })
    }
}

/// A key that is neither empty nor too long.
///
/// # Errors
/// What is wrong with it, and where it was said.
pub(super) fn key_of(place: &str, key: &str, longest: usize) -> Result<(), Fault> {
    match key.len() {
        0 => Err(invalid(format!("{place}: a key must not be empty"))),
        long if long > longest => {
            let detail = format!("{place}: a key of {long} bytes; at most {longest} are allowed");
            Err(meaningless(detail))
        }
        _ => Ok(()),
    }
}

/// The same keys as the middleware tells of them: their clients have named them themselves.
pub(super) fn shown(keys: &[Key]) -> Vec<ScopeKey> {
    keys.iter().cloned().map(ScopeKey::public).collect()
}

/// How many keys one request may be charged to.
const MOST_KEYS: usize = 16;
