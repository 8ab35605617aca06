use std::fmt;

use crate::quota::Key;
use smallvec::SmallVec;

/// The key of a quota, and how much of it a client may be told.
///
/// A key may be made of what a request says, and that may be a secret: a client is told none of it
/// unless whoever made the key says so.
#[derive(Clone, PartialEq, Eq)]
pub struct ScopeKey {
    text: Key,
    shown: Shown,
}

/// The keys of one request: its own first, then its other scopes. Up to two need no allocation.
pub(super) type ScopeKeys = SmallVec<[ScopeKey; 2]>;

/// What a client is told of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// What stands before its first colon.
    Name,
    All,
}

impl ScopeKey {
    /// A key that clients are told nothing of.
    pub fn new(text: impl Into<Key>) -> Self {
        Self { text: text.into(), shown: Shown::Nothing }
    }

    /// A key that clients may see.
    pub fn public(text: impl Into<Key>) -> Self {
        Self { text: text.into(), shown: Shown::All }
    }

    /// A key `name:...` of which clients may see the name.
    pub fn named(text: impl Into<Key>) -> Self {
        Self { text: text.into(), shown: Shown::Name }
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What clients may see of it, if that is all.
    pub fn shown(&self) -> Option<&str> {
        (self.shown == Shown::All).then_some(&self.text)
    }

    /// What clients may see of what stands before its first colon.
    pub fn name(&self) -> &str {
        match self.shown {
            Shown::Nothing => "",
            Shown::Name | Shown::All => {
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
