use std::borrow::Cow;
use std::fmt;

use http::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::config::tree::mask;

/// A URL, which may hold a password: shown is one without who logs in, and without what stands after
/// a `?`.
///
/// ```
/// use tollgate::config::Config;
/// let config = Config::parse("bus: {redis: 'redis://:hunter2@127.0.0.1'}")?;
/// assert!(!format!("{config:?}").contains("hunter2"));
/// # Ok::<(), tollgate::config::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// The whole URL, secrets included.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What stands before `://`.
    pub fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// What stands behind the hosts, up to a `?`.
    pub fn path(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
        path.split(['?', '#']).next().unwrap_or_default()
    }

    /// # Errors
    /// What is wrong, without the text.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or(WRONG)?;
        if !SEVERAL_HOSTS.contains(&scheme) {
            return if is_url(text) { Ok(Self(text.to_owned())) } else { Err(WRONG) };
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        match hosts.split(',').all(|host| is_url(&format!("{scheme}://{login}{host}{path}"))) {
            true => Ok(Self(text.to_owned())),
            false => Err(WRONG_HOSTS),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", mask(&self.0))
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Address;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a URL")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Address, E> {
                Address::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Address {
    fn schema_name() -> Cow<'static, str> {
        "Url".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A URL. Who logs in there, and what stands after a `?`, is shown nowhere.",
            "pattern": r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]\S*$",
        })
    }
}

/// Whether it is a URL of one host.
fn is_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority().filter(|_| uri.scheme().is_some()) else { return false };
    let place = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = place.rsplit(']').next().and_then(|rest| rest.split_once(':'));
    let bad_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_err());
    !authority.host().is_empty() && !authority.host().contains(',') && !bad_port
}

/// Schemes of which a URL may name several hosts.
const SEVERAL_HOSTS: [&str; 2] = ["redis-cluster", "redis-sentinel"];

const WRONG: &str =
    "must be a URL of a scheme, a host and maybe a port, as https://example.org:8443";

const WRONG_HOSTS: &str = "must be a URL of a scheme and of hosts, each maybe with a port, as \
                           redis-cluster://10.0.0.1:6379,10.0.0.2:6379";
