use std::borrow::Cow;
use std::fmt;

use http::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::tree::mask;

/// A URL that may contain a password. `Display` and `Debug` replace the credentials, the query and the
/// fragment by `***`.
///
/// ```
/// use paceline_config::Config;
/// let config = Config::parse("bus: {redis: 'redis://:hunter2@127.0.0.1'}")?;
/// assert!(!format!("{config:?}").contains("hunter2"));
/// # Ok::<(), paceline_config::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Returns the whole URL, including its secrets.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the scheme, the part before `://`.
    pub fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// Returns the path, the part between the hosts and a `?` or `#`.
    pub fn path(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
        path.split(['?', '#']).next().unwrap_or_default()
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// Returns the reason, without the text.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or(INVALID_URL)?;
        if scheme == "unix" {
            return match rest.starts_with('/') && rest.len() > 1 {
                true => Ok(Self(text.to_owned())),
                false => Err(INVALID_SOCKET),
            };
        }
        if !scheme.ends_with("-cluster") && !scheme.ends_with("-sentinel") {
            return if is_url(text) { Ok(Self(text.to_owned())) } else { Err(INVALID_URL) };
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        match hosts.split(',').all(|host| is_url(&format!("{scheme}://{login}{host}{path}"))) {
            true => Ok(Self(text.to_owned())),
            false => Err(INVALID_HOSTS),
        }
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(&self.0))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", mask(&self.0))
    }
}

impl<'de> Deserialize<'de> for SecretUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = SecretUrl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a URL")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SecretUrl, E> {
                SecretUrl::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for SecretUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for SecretUrl {
    fn schema_name() -> Cow<'static, str> {
        "Url".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A URL. Its credentials and its query are never displayed.",
            "pattern": r"^([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]\S*|unix:///\S+)$",
        })
    }
}

/// Returns `true` for a URL with one host.
fn is_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority().filter(|_| uri.scheme().is_some()) else { return false };
    let place = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = place.rsplit(']').next().and_then(|rest| rest.split_once(':'));
    let bad_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_err());
    !authority.host().is_empty() && !authority.host().contains(',') && !bad_port
}

const INVALID_SOCKET: &str =
    "must be a URL with the absolute path of a socket, such as unix:///run/redis.sock";

const INVALID_URL: &str =
    "must be a URL with a scheme, a host and optionally a port, such as https://example.org:8443";

const INVALID_HOSTS: &str = "must be a URL with a scheme and hosts, each optionally with a port, such as \
                           redis-cluster://10.0.0.1:6379,10.0.0.2:6379";
