use alloc::borrow::Cow;
use alloc::string::String;
use core::borrow::Borrow;
use core::fmt;
use core::ops::Deref;

use compact_str::CompactString;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// The name under which requests share limits: a model, a client, a tenant.
///
/// Dereferences to `str`, and compares, orders and hashes like it. Text of up to 24 bytes is stored
/// inline, without an allocation.
///
/// ```
/// use paceline_limiter::Key;
///
/// let key = Key::from("gpt-4o");
/// assert_eq!(key, "gpt-4o");
/// assert!(key.starts_with("gpt"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(CompactString);

impl Key {
    /// Creates a key from static text, without an allocation.
    #[inline]
    pub const fn from_static(text: &'static str) -> Self {
        Self(CompactString::const_new(text))
    }

    #[inline]
    pub(crate) const fn from_text(text: CompactString) -> Self {
        Self(text)
    }

    /// Returns the text of the key.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Key {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Key {
    #[inline]
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&String> for Key {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Cow<'_, str>> for Key {
    fn from(text: Cow<'_, str>) -> Self {
        Self(text.into())
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0.into()
    }
}

impl PartialEq<str> for Key {
    fn eq(&self, text: &str) -> bool {
        **self == *text
    }
}

impl PartialEq<&str> for Key {
    fn eq(&self, text: &&str) -> bool {
        **self == **text
    }
}

impl PartialEq<String> for Key {
    fn eq(&self, text: &String) -> bool {
        **self == **text
    }
}

impl PartialEq<Key> for str {
    fn eq(&self, key: &Key) -> bool {
        *self == **key
    }
}

impl PartialEq<Key> for &str {
    fn eq(&self, key: &Key) -> bool {
        **self == **key
    }
}

impl PartialEq<Key> for String {
    fn eq(&self, key: &Key) -> bool {
        **self == **key
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use core::hash::BuildHasher;

    use super::*;

    #[test]
    fn key_hashes_orders_and_prints_like_str() {
        let (key, hasher) = (Key::from("a \"key\""), foldhash::fast::FixedState::default());
        assert_eq!(hasher.hash_one(&key), hasher.hash_one("a \"key\""));
        assert_eq!(format!("{key} {key:?}"), r#"a "key" "a \"key\"""#);
        let [a, b] = ["a", "b"].map(Key::from);
        assert!(a < b);
        assert_eq!(String::from(key), "a \"key\"");
    }

    #[test]
    fn key_is_serialized_as_a_string() {
        let key = Key::from_static("gpt-4o");
        assert_eq!(serde_json::to_string(&key).unwrap(), r#""gpt-4o""#);
        assert_eq!(serde_json::from_str::<Key>(r#""gpt-4o""#).unwrap(), key);
    }
}
