use std::borrow::Cow;

use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{StatusCode, Uri};
use percent_encoding::percent_decode;

use crate::problem::Problem;
use paceline_config::SecretUrl;

/// The base URL of an upstream. A request can reach neither another host nor a path above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    /// Without a trailing slash.
    path: String,
}

impl BaseUrl {
    /// Parses an address; `None` for an invalid URL, which the configuration rejects.
    pub(super) fn of(address: &SecretUrl) -> Option<Self> {
        let uri: Uri = address.expose().parse().ok()?;
        let (scheme, authority) = (uri.scheme()?.clone(), uri.authority()?.clone());
        Some(Self { scheme, authority, path: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Returns true if TLS may negotiate HTTP/2.
    pub(super) fn may_be_http2(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Returns the URL of a path below the base, unchanged. The path is empty or starts with a slash.
    ///
    /// # Errors
    /// Returns a [`Problem`] for a path that would leave the base.
    pub(super) fn join(&self, path: &str, query: Option<&str>) -> Result<Uri, Problem> {
        if has_dot_segments(path) {
            return Err(invalid_path("the path must not contain `.` or `..` segments"));
        }
        let mut joined = format!("{}{path}", self.prefix_for(path));
        if joined.is_empty() {
            joined.push('/');
        }
        if let Some(query) = query {
            joined = format!("{joined}?{query}");
        }
        let whole = PathAndQuery::try_from(joined).ok().and_then(|path| {
            let parts = Uri::builder().scheme(self.scheme.clone());
            parts.authority(self.authority.clone()).path_and_query(path).build().ok()
        });
        whole.ok_or_else(|| invalid_path("the path is not valid in a URL"))
    }

    /// Returns the part of the base path that precedes `path` in the joined URL.
    ///
    /// If `path` starts with the whole base path and the base path contains an API version, the prefix is
    /// empty. If `path` starts with the version at the end of the base path, that version is omitted.
    fn prefix_for(&self, path: &str) -> &str {
        let rest = path.strip_prefix(&self.path);
        let is_whole = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if is_whole && self.path.split('/').any(is_version) {
            return "";
        }
        let first = path.split('/').nth(1).unwrap_or_default();
        match self.path.rsplit_once('/') {
            Some((above, last)) if last == first && is_version(last) => above,
            _ => &self.path,
        }
    }
}

/// Returns true for an API version: `v1`, `v1beta`, `v1alpha2`.
fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix('v').unwrap_or_default();
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// Returns true if a segment of the path is `.` or `..` in any spelling: percent-encoded once or twice,
/// with backslashes, or with a parameter.
fn has_dot_segments(path: &str) -> bool {
    let mut text = Cow::Borrowed(path.as_bytes());
    for _ in 0..=DECODINGS {
        let dots = |segment: &[u8]| {
            let name = segment.split(|&byte| byte == b';').next().unwrap_or_default();
            matches!(name, b"." | b"..")
        };
        if text.split(|byte| b"/\\".contains(byte)).any(dots) {
            return true;
        }
        if !text.contains(&b'%') {
            return false;
        }
        text = Cow::Owned(percent_decode(&text).collect());
    }
    false
}

fn invalid_path(detail: &'static str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid_path", detail)
}

/// A gateway in front of the upstream may decode the path once more.
const DECODINGS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Serve, parse};

    fn base(url: &str) -> BaseUrl {
        let text = format!("serve: {{upstreams: {{a: {{base_url: '{url}', provider: openai}}}}}}");
        let config = parse(&text).expect("a valid configuration");
        BaseUrl::of(&Serve::of(&config).unwrap().upstreams[0].base_url).expect("a URL")
    }

    fn joined(base: &BaseUrl, path: &str) -> Option<String> {
        base.join(path, None).ok().map(|uri| uri.to_string())
    }

    #[test]
    fn path_is_appended_to_base_unchanged() {
        let at = base("https://example.org:8443/llm/");
        let uri = at.join("/v1/models/a%2Fb%20c:x//", Some("key=1&a=%20")).expect("a URL");
        let whole = "https://example.org:8443/llm/v1/models/a%2Fb%20c:x//?key=1&a=%20";
        assert_eq!(uri.to_string(), whole);
        assert_eq!(joined(&at, "").as_deref(), Some("https://example.org:8443/llm"));
        assert_eq!(joined(&base("http://h"), "").as_deref(), Some("http://h/"));
        assert_eq!(joined(&base("http://h"), "/..a/b..").as_deref(), Some("http://h/..a/b.."));
    }

    #[test]
    fn version_at_the_end_of_the_base_is_not_repeated() {
        for (at, path, whole) in [
            ("https://h/v1", "/v1/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/v1/", "/v1/models", "https://h/v1/models"),
            ("https://h/v1", "/v1", "https://h/v1"),
            ("https://h/openai/v1", "/v1/models", "https://h/openai/v1/models"),
            ("https://h/v1beta", "/v1beta/models", "https://h/v1beta/models"),
            ("https://h/v1", "/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/api/v1", "/api/v1/models", "https://h/api/v1/models"),
            ("https://h/v1beta/openai", "/v1beta/openai/a", "https://h/v1beta/openai/a"),
            ("https://h/api/v1", "/api/v1x/a", "https://h/api/v1/api/v1x/a"),
            ("https://h/v1", "/v2/chat", "https://h/v1/v2/chat"),
            ("https://h/v1", "/v1beta/models", "https://h/v1/v1beta/models"),
            ("https://h/v1", "//v1/models", "https://h/v1//v1/models"),
            ("https://h/api", "/api/chat", "https://h/api/api/chat"),
            ("https://h/vertex", "/vertex/a", "https://h/vertex/vertex/a"),
        ] {
            assert_eq!(joined(&base(at), path).as_deref(), Some(whole), "{at} {path}");
        }
    }

    #[test]
    fn paths_above_the_base_are_refused() {
        let at = base("http://h/llm");
        for path in [
            "/..",
            "/../x",
            "/v1/../../x",
            "/.",
            "/%2e%2e/x",
            "/%2E./x",
            "/..%2fx",
            "/a/..%5cx",
            "/..\\x",
            "/%252e%252e/x",
            "/..;a=b/x",
            "/a%2f..%2fx",
        ] {
            assert_eq!(joined(&at, path), None, "{path}");
        }
        for path in ["//evil.example/x", "/@evil.example", "/http://evil.example"] {
            let uri = at.join(path, None).expect("a URL");
            assert_eq!(uri.host(), Some("h"), "{path}");
        }
    }
}
