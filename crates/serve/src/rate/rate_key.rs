use std::borrow::Cow;

use super::path_segment::{self, EMPTY_KEY};
use paceline_config::RATE_PREFIX;

/// A key of `/rate`. Its limits are those of the key `rate/NAME` in the limiter, so that no model, tenant or key of
/// `/v1` has the same ones.
#[derive(Debug)]
pub(super) struct RateKey<'a>(Cow<'a, str>);

impl<'a> RateKey<'a> {
    /// Reads the key of a path `/rate/NAME`, which is not copied if it has no escapes.
    ///
    /// # Errors
    /// Returns the error text for an invalid name.
    pub(super) fn of_path(path: &'a str, max_length: usize) -> Result<Self, &'static str> {
        let key = path.strip_prefix('/').unwrap_or_default();
        let segment = key.strip_prefix(RATE_PREFIX).unwrap_or_default();
        match path_segment::decode(segment, max_length, EMPTY_KEY)? {
            Cow::Borrowed(name) if name.len() == segment.len() => Ok(Self(Cow::Borrowed(key))),
            name => Ok(Self::named(&name)),
        }
    }

    pub(super) fn named(name: &str) -> Self {
        Self(Cow::Owned(format!("{RATE_PREFIX}{name}")))
    }

    /// Returns the name of a key in the limiter; `None` if it isn't a key of `/rate`.
    pub(super) fn name_of(key: &str) -> Option<&str> {
        key.strip_prefix(RATE_PREFIX)
    }

    /// Returns the key in the limiter.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name that the client has sent.
    pub(super) fn name(&self) -> &str {
        &self.0[RATE_PREFIX.len()..]
    }

    pub(super) fn into_owned(self) -> RateKey<'static> {
        RateKey(Cow::Owned(self.0.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_path_has_the_prefix_and_the_decoded_name() {
        for (path, key, is_borrowed) in [
            ("/rate/user-7", "rate/user-7", true),
            ("/rate/a%2Fb", "rate/a/b", false),
            ("/rate/%20a%20", "rate/a", false),
            ("/rate/rate%2Fa", "rate/rate/a", false),
        ] {
            let read = RateKey::of_path(path, 99).unwrap();
            assert_eq!((read.as_str(), read.name()), (key, &key[5..]));
            assert_eq!(matches!(read.0, Cow::Borrowed(_)), is_borrowed, "{path}");
        }
        assert_eq!(RateKey::of_path("/rate/%20", 99).unwrap_err(), EMPTY_KEY);
        assert_eq!(RateKey::name_of("tenant:a"), None);
    }
}
