//! URLs of requests: a base URL joined with the path of a line.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// A base URL, as in `--base-url` or an SDK's `base_url`, with or without a trailing `/v1`.
///
/// ```
/// use paceline_cli::batch::target::Base;
///
/// # fn main() -> Result<(), paceline_cli::batch::target::InvalidBase> {
/// let base: Base = "https://api.openai.com/v1/".parse()?;
/// assert_eq!(base.join("/v1/embeddings"), "https://api.openai.com/v1/embeddings");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    origin: String,
    path: String,
    /// The path of OpenAI's endpoints, if known.
    openai_path: Option<&'static str>,
}

impl Base {
    /// Joins an absolute path, with its query, to this base.
    ///
    /// Segments at the end of the base and the start of the path are not duplicated. A version in
    /// the base (`/v1beta/openai`, `/api/paas/v4`) replaces the `/v1` of Batch lines.
    pub fn join(&self, path: &str) -> String {
        if let (Some(openai_path), Some(endpoint)) = (self.openai_path, openai_endpoint(path)) {
            return format!("{}{openai_path}{endpoint}", self.origin);
        }
        let path = path.trim_start_matches('/');
        let rest = match self.overlap(path) {
            0 if self.has_version() => path.strip_prefix("v1/").unwrap_or(path),
            length => path[length..].trim_start_matches('/'),
        };
        format!("{}{}/{rest}", self.origin, self.path)
    }

    /// Returns true for an OpenAI-compatible path of another API, such as Gemini's
    /// `/v1beta/openai`.
    pub fn is_compatible_with_openai(&self) -> bool {
        let above = self.path.strip_suffix("/openai").and_then(|path| path.rsplit('/').next());
        above.is_some_and(|version| version.starts_with("v1"))
    }

    /// Sets another path than `/v1` for OpenAI's endpoints (`/openai/v1` at Azure and Groq).
    /// Ignored if the base has a path.
    ///
    /// ```
    /// use paceline_cli::batch::target::Base;
    ///
    /// # fn main() -> Result<(), paceline_cli::batch::target::InvalidBase> {
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

    /// Returns true for a loopback address.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.origin.parse::<Uri>().ok().and_then(|uri| Some(uri.host()?.to_owned()));
        let host = host.unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Returns the length of the prefix of `path` that the base ends with, in whole segments.
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

/// Returns the part after `/v1` of a path of OpenAI's. Azure's Batch lines omit `/v1`.
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

/// An invalid base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidBase {
    /// The given URL, without user name, password, query and fragment.
    pub base: String,
    /// The error.
    pub reason: &'static str,
}

impl fmt::Display for InvalidBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, reason } = self;
        write!(f, "base URL `{base}` {reason}; write it as https://api.openai.com/v1")
    }
}

impl std::error::Error for InvalidBase {}

/// Removes user info and query, which may hold secrets.
fn without_secret(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match text.rsplit_once('@') {
        Some((_, host)) => host.to_owned(),
        None => text.to_owned(),
    }
}
