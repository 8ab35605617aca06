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

    /// # Errors
    /// What is wrong, without the text.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text.parse().map_err(|_| WRONG)?;
        let authority = uri.authority().filter(|_| uri.scheme().is_some()).ok_or(WRONG)?;
        let place = authority.as_str().rsplit('@').next().unwrap_or_default();
        let port = place.rsplit(']').next().and_then(|rest| rest.split_once(':'));
        let bad_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_err());
        match authority.host().is_empty() || bad_port {
            true => Err(WRONG),
            false => Ok(Self(text.to_owned())),
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
            "format": "uri",
            "pattern": "^[A-Za-z][A-Za-z0-9+.-]*://[^/]",
        })
    }
}

const WRONG: &str =
    "must be a URL of a scheme, a host and maybe a port, as https://example.org:8443";
