//! The host of a request, and its origin.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Version};

use super::problem::Problem;

/// Returns an error for a request with two hosts (RFC 9112, 3.2; RFC 9113, 8.3.1) or with user
/// information before its host (RFC 9110, 4.2.4), since other servers may read another host from it.
pub(super) fn check_ambiguity<B>(request: &Request<B>) -> Option<Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, second) = (hosts.next().map(HeaderValue::as_bytes), hosts.next());
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let has_userinfo = |named: Option<&[u8]>| named.is_some_and(|named| named.contains(&b'@'));
    let is_http2 = request.version() == Version::HTTP_2;
    let differs = || matches!((host, authority), (Some(a), Some(b)) if !a.eq_ignore_ascii_case(b));
    let detail = if second.is_some() {
        "the request has multiple `Host` headers; send exactly one"
    } else if has_userinfo(host) || has_userinfo(authority) {
        "the host of the request contains a user name; send the host only"
    } else if is_http2 && differs() {
        "the `Host` header of the request differs from its `:authority`; send only one of them"
    } else {
        return None;
    };
    Some(Problem::new(StatusCode::BAD_REQUEST, "ambiguous_host", detail))
}

/// A host and its port.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host<'a> {
    name: &'a str,
    port: &'a str,
}

impl<'a> Host<'a> {
    /// Returns the host of a request.
    pub(super) fn of<B>(request: &'a Request<B>) -> Option<Self> {
        match request.uri().authority() {
            Some(authority) => Self::parse(authority.as_str()),
            None => Self::parse(request.headers().get(HOST)?.to_str().ok()?),
        }
    }

    /// Parses `NAME`, `NAME:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.
    fn parse(text: &'a str) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let port = if port.is_empty() { "80" } else { port };
        port.bytes().all(|byte| byte.is_ascii_digit()).then_some(Self { name, port })
    }

    /// Returns the name, or the address without brackets.
    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    fn is_origin(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        origin.and_then(Host::parse).is_some_and(|origin| {
            origin.name.eq_ignore_ascii_case(self.name) && origin.port == self.port
        })
    }
}

/// Returns true if a browser states that a page of another origin or another site sent the request.
/// Sites ignore the port (W3C, Fetch Metadata); origins include it.
pub(super) fn is_cross_origin(headers: &HeaderMap, host: Host<'_>) -> bool {
    let is_same_site = |site: &HeaderValue| site == "same-origin" || site == "none";
    !headers.get_all(SITE).iter().all(is_same_site)
        || !headers.get_all(ORIGIN).iter().all(|origin| host.is_origin(origin))
}

/// Returns true if the request has a header that reverse proxies add.
pub(super) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        let starts =
            ["x-forward", "x-envoy-", "x-azure-", "cf-", "x-amz-cf-", "fly-", "tailscale-user-"];
        let ends = ["-client-ip", "-clientip", "-real-ip", "forwarded-for"];
        starts.iter().any(|start| name.starts_with(start))
            || ends.iter().any(|end| name.ends_with(end))
            || FORWARDING.contains(&name)
    })
}

/// Forwarding headers without a common prefix or suffix.
const FORWARDING: [&str; 11] = [
    "cdn-loop",
    "client-ip",
    "forwarded",
    "front-end-https",
    "via",
    "x-appengine-user-ip",
    "x-client-ip",
    "x-original-host",
    "x-original-url",
    "x-remote-addr",
    "x-remote-ip",
];

/// The relation of the requesting page to this host (W3C, Fetch Metadata).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
