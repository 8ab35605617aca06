use std::fmt;

use crate::quota::Key;
use smallvec::SmallVec;

/// The key of a quota, with its visibility to clients.
///
/// A key may be derived from request data that is secret, so that responses contain no part of it
/// unless the key was created with [`ScopeKey::public`] or [`ScopeKey::named`].
#[derive(Clone, PartialEq, Eq)]
pub struct ScopeKey {
    text: Key,
    visibility: Visibility,
    /// `true` if a profile has read it as the model of a request.
    is_model: bool,
}

/// The keys of one request: the primary key first, then the other scopes. Up to two keys are stored
/// without an allocation.
pub(super) type ScopeKeys = SmallVec<[ScopeKey; 2]>;

/// The part of a key that responses may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Hidden,
    /// The part before the first colon.
    Name,
    /// All of a key `name:value` that is derived from a request.
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "constructed by server mode"))]
    Value,
    /// All of a model's key, or of a fixed key.
    Full,
}

impl ScopeKey {
    /// Creates a key that is hidden from clients.
    pub fn new(text: impl Into<Key>) -> Self {
        Self::of(text, Visibility::Hidden)
    }

    /// Creates a key that is fully visible to clients.
    pub fn public(text: impl Into<Key>) -> Self {
        Self::of(text, Visibility::Full)
    }

    /// Creates a key `name:...` of which only the name is visible to clients.
    pub fn named(text: impl Into<Key>) -> Self {
        Self::of(text, Visibility::Name)
    }

    /// Creates a key `name:value` that is derived from a request, such as a tenant's. It is fully visible
    /// to clients.
    #[cfg(feature = "axum")]
    pub(super) fn plain(text: impl Into<Key>) -> Self {
        Self::of(text, Visibility::Value)
    }

    /// Creates the key of the model that a profile has read from a request. Its limits without an algorithm count
    /// as those of the provider.
    pub(super) fn of_model(text: impl Into<Key>) -> Self {
        Self { is_model: true, ..Self::new(text) }
    }

    /// Creates the key of a request that names no model.
    pub(super) fn of_unknown_model() -> Self {
        Self::of_model(Key::from_static(UNKNOWN_MODEL))
    }

    /// Returns `true` for the key of a request that names no model.
    pub(super) fn is_unknown_model(&self) -> bool {
        self.is_model && self.text == UNKNOWN_MODEL
    }

    fn of(text: impl Into<Key>, visibility: Visibility) -> Self {
        Self { text: text.into(), visibility, is_model: false }
    }

    /// Makes all of the key visible to clients.
    #[must_use]
    pub fn shown_in_full(self) -> Self {
        Self { visibility: Visibility::Full, ..self }
    }

    /// Returns `true` if a profile has read the key as the model of a request.
    pub(super) fn is_model(&self) -> bool {
        self.is_model
    }

    /// Replaces the text. Returns the former one.
    pub(super) fn rename(&mut self, rename: impl FnOnce(Key) -> Key) -> Key {
        let text = rename(self.text.clone());
        std::mem::replace(&mut self.text, text)
    }

    /// Returns `true` for the key of a client or tenant, which is derived from a request, and `false` for
    /// that of a model.
    #[cfg(feature = "axum")]
    pub(super) fn is_of_client(&self) -> bool {
        self.visibility != Visibility::Full
    }

    /// Returns the full text of the key.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the full text of the key if it is fully visible to clients.
    pub fn shown(&self) -> Option<&str> {
        match self.visibility {
            Visibility::Value | Visibility::Full => Some(&self.text),
            Visibility::Hidden | Visibility::Name => None,
        }
    }

    /// Returns the part before the first colon, or an empty string if the key is hidden from clients.
    pub fn name(&self) -> &str {
        match self.visibility {
            Visibility::Hidden => "",
            Visibility::Name | Visibility::Value | Visibility::Full => {
                let colon = self.text.bytes().position(|byte| byte == b':');
                &self.text[..colon.unwrap_or(self.text.len())]
            }
        }
    }

    pub(super) fn into_text(self) -> Key {
        self.text
    }
}

impl AsRef<str> for ScopeKey {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<&str> for ScopeKey {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for ScopeKey {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Key> for ScopeKey {
    fn from(text: Key) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// The key of requests that don't name a model.
const UNKNOWN_MODEL: &str = "unknown";
