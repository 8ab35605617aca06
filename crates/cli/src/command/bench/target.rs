use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

/// The URL of a server: `http://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub(super) authority: Authority,
    port: u16,
}

impl Url {
    /// Resolves the address.
    ///
    /// # Errors
    /// Returns an error if there is no address, or if it is not a loopback address and `remote` is
    /// false.
    pub(super) async fn resolve(&self, remote: bool) -> Result<SocketAddr, String> {
        let host = self.authority.host().trim_matches(['[', ']']);
        let found = tokio::net::lookup_host((host, self.port)).await;
        let found = found.map_err(|error| format!("{host}: {error}"))?;
        // A server listens on one of the addresses, most often the IPv4 one.
        let mut addresses: Vec<SocketAddr> = found.collect();
        addresses.sort_by_key(SocketAddr::is_ipv6);
        let address = *addresses
            .first()
            .ok_or_else(|| format!("{host}: no address found; check the host name"))?;
        match address.ip().is_loopback() || remote {
            true => Ok(address),
            false => Err(format!(
                "{host}: not this machine; add --allow-remote if you operate that server"
            )),
        }
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri =
            text.parse().map_err(|_| "not a URL; write it as http://HOST:PORT".to_owned())?;
        match (uri.scheme_str(), uri.authority(), uri.path(), uri.query()) {
            (Some("http"), Some(authority), "/", None) if !authority.as_str().contains('@') => {
                Ok(Self { authority: authority.clone(), port: authority.port_u16().unwrap_or(80) })
            }
            (Some("https"), ..) => Err("https is not supported; paceline serves http".to_owned()),
            _ => Err("must be http://HOST:PORT; set a path with --path".to_owned()),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// A path with the placeholder `{key}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate(String);

impl PathTemplate {
    pub(super) fn path(&self, key: u64) -> String {
        self.0.replace("{key}", &format!("bench-{key}"))
    }

    pub(super) fn has_query(&self) -> bool {
        self.0.contains('?')
    }
}

impl FromStr for PathTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let template = Self(text.to_owned());
        match PathAndQuery::try_from(template.path(0)) {
            Ok(path) if path.as_str().starts_with('/') => Ok(template),
            _ => Err("not a path; it must start with / and contain no spaces".to_owned()),
        }
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
