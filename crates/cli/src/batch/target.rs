//! Where a request goes: a base URL and the path of its line.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// A base URL, as `--base-url` or an SDK's `base_url` gives it: with `/v1` at its end, or without.
///
/// ```
/// use tollgate_cli::batch::target::Base;
///
/// # fn main() -> Result<(), tollgate_cli::batch::target::InvalidBase> {
/// let base: Base = "https://api.openai.com/v1/".parse()?;
/// assert_eq!(base.join("/v1/embeddings"), "https://api.openai.com/v1/embeddings");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    origin: String,
    path: String,
    /// Where OpenAI's endpoints are, if that is known.
    openai_path: Option<&'static str>,
}

impl Base {
    /// The URL of `path` (absolute, with its query) under this base.
    ///
    /// Segments that end the base and start the path are written once. Where the base names a
    /// version of its own (`/v1beta/openai`, `/api/paas/v4`), that version replaces the `/v1` that
    /// Batch lines start with.
    pub fn join(&self, path: &str) -> String {
        if let (Some(place), Some(endpoint)) = (self.openai_path, openai_endpoint(path)) {
            return format!("{}{place}{endpoint}", self.origin);
        }
        let path = path.trim_start_matches('/');
        let rest = match self.overlap(path) {
            0 if self.has_version() => path.strip_prefix("v1/").unwrap_or(path),
            length => path[length..].trim_start_matches('/'),
        };
        format!("{}{}/{rest}", self.origin, self.path)
    }

    /// Whether it is where an API of another format speaks OpenAI's too, as Gemini's
    /// `/v1beta/openai`.
    pub fn is_compatible_with_openai(&self) -> bool {
        let above = self.path.strip_suffix("/openai").and_then(|path| path.rsplit('/').next());
        above.is_some_and(|version| version.starts_with("v1"))
    }

    /// The same base for an API that has OpenAI's endpoints at another path than `/v1`
    /// (`/openai/v1` at Azure and Groq). It counts for a base that has no path: one with a path says
    /// itself where they are.
    ///
    /// ```
    /// use tollgate_cli::batch::target::Base;
    ///
    /// # fn main() -> Result<(), tollgate_cli::batch::target::InvalidBase> {
    /// let base = "https://api.groq.com".parse::<Base>()?.with_openai_at("/openai/v1");
    /// let url = "https://api.groq.com/openai/v1/chat/completions";
    /// assert_eq!(base.join("/v1/chat/completions"), url);
    /// assert_eq!(base.join("/openai/v1/chat/completions"), url);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_openai_at(self, path: &'static str) -> Self {
        Self { openai_path: self.path.is_empty().then_some(path), ..self }
    }

    /// Whether it is on this machine, where no proxy leads.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.origin.parse::<Uri>().ok().and_then(|uri| Some(uri.host()?.to_owned()));
        let host = host.unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The length of the start of `path` that the base ends in, in whole segments.
    fn overlap(&self, path: &str) -> usize {
        let end = path.find('?').unwrap_or(path.len());
        let cuts = path[..end].match_indices('/').map(|(at, _)| at).chain([end]);
        cuts.filter(|&cut| cut > 0 && self.path.ends_with(&format!("/{}", &path[..cut])))
            .max()
            .unwrap_or(0)
    }

    fn has_version(&self) -> bool {
        self.path.split('/').any(|segment| {
            let mut bytes = segment.bytes();
            bytes.next() == Some(b'v') && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        })
    }
}

impl FromStr for Base {
    type Err = InvalidBase;

    fn from_str(text: &str) -> Result<Self, InvalidBase> {
        let refused = |reason| InvalidBase { base: without_secret(text), reason };
        let uri: Uri = text.parse().map_err(|_| refused("is not a URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refused("has no scheme"));
        };
        if !matches!(scheme, "http" | "https") {
            return Err(refused("is neither http nor https"));
        }
        if authority.as_str().contains('@') {
            return Err(refused("contains a user name"));
        }
        if authority.host().is_empty() {
            return Err(refused("has no host"));
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(refused("has a query or fragment"));
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { origin: format!("{scheme}://{authority}"), path, openai_path: None })
    }
}

/// What follows the `/v1` in the path of an endpoint of OpenAI's. Azure's Batch lines leave `/v1` out.
fn openai_endpoint(path: &str) -> Option<&str> {
    let endpoint = if path.starts_with("/v1/") { &path["/v1".len()..] } else { path };
    let bare = endpoint.split('?').next().unwrap_or(endpoint);
    let is_known =
        ENDPOINTS.contains(&bare) || FAMILIES.iter().any(|start| bare.starts_with(start));
    is_known.then_some(endpoint)
}

const ENDPOINTS: &[&str] =
    &["/chat/completions", "/completions", "/embeddings", "/responses", "/moderations"];

const FAMILIES: &[&str] = &["/images/", "/audio/"];

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

/// A base URL that no request can be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidBase {
    /// What was given, without user name, password, query or fragment.
    pub base: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for InvalidBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, reason } = self;
        write!(f, "base URL `{base}` {reason}; write it as https://api.openai.com/v1")
    }
}

impl std::error::Error for InvalidBase {}

/// Passwords stand before an `@`, keys in queries: neither is repeated in an error.
fn without_secret(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match text.rsplit_once('@') {
        Some((_, host)) => host.to_owned(),
        None => text.to_owned(),
    }
}
