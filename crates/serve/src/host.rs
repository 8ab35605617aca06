//! Which host a request names.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Version};

use super::problem::Problem;

/// A head that names its host in two ways (RFC 9112, 3.2; RFC 9113, 8.3.1), or with a user name and a
/// password before it (RFC 9110, 4.2.4): it is refused, since others may read another host in it.
pub(super) fn ambiguous<B>(request: &Request<B>) -> Option<Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, second) = (hosts.next().map(HeaderValue::as_bytes), hosts.next());
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let has_userinfo = |named: Option<&[u8]>| named.is_some_and(|named| named.contains(&b'@'));
    let is_http2 = request.version() == Version::HTTP_2;
    let differs = || matches!((host, authority), (Some(a), Some(b)) if !a.eq_ignore_ascii_case(b));
    let detail = if second.is_some() {
        "the request has more than one `Host` header; send one"
    } else if has_userinfo(host) || has_userinfo(authority) {
        "the host of the request has a user name before it; send the host alone"
    } else if is_http2 && differs() {
        "the `Host` header of the request is another than its `:authority`; send one of them"
    } else {
        return None;
    };
    Some(Problem::new(StatusCode::BAD_REQUEST, "ambiguous_host", detail))
}

/// A host and its port, as a request or an origin names them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host<'a> {
    name: &'a str,
    port: &'a str,
}

impl<'a> Host<'a> {
    /// The one that a request asks for.
    pub(super) fn of<B>(request: &'a Request<B>) -> Option<Self> {
        match request.uri().authority() {
            Some(authority) => Self::read(authority.as_str()),
            None => Self::read(request.headers().get(HOST)?.to_str().ok()?),
        }
    }

    /// `NAME`, `NAME:PORT`, `[ADDRESS]`, `[ADDRESS]:PORT`.
    fn read(text: &'a str) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let port = if port.is_empty() { "80" } else { port };
        port.bytes().all(|byte| byte.is_ascii_digit()).then_some(Self { name, port })
    }

    /// Without the brackets of an address.
    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    fn is_origin(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        origin.and_then(Host::read).is_some_and(|origin| {
            origin.name.eq_ignore_ascii_case(self.name) && origin.port == self.port
        })
    }
}

/// Whether a page of another origin asks for this host, or of another site, as browsers tell it. Sites
/// have no ports (W3C, Fetch Metadata); origins do.
pub(super) fn is_of_another_page(headers: &HeaderMap, host: Host<'_>) -> bool {
    let is_own_site = |site: &HeaderValue| site == "same-origin" || site == "none";
    !headers.get_all(SITE).iter().all(is_own_site)
        || !headers.get_all(ORIGIN).iter().all(|origin| host.is_origin(origin))
}

/// Whether a proxy has forwarded the request, as most of them tell it.
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

/// Beside those that begin or end as most do.
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

/// Whose page asks, as browsers tell it (W3C, Fetch Metadata).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
