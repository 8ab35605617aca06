//! Hop-by-hop headers (RFC 9110, 7.6.1) and headers of the proxy itself.

use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, COOKIE, EXPECT, HOST,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
    UPGRADE_INSECURE_REQUESTS, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Turns the headers of a client's request into those of the request to the upstream. The HTTP client
/// sets `host`.
///
/// `expect` is removed, because the complete body was received. `te: trailers` is forwarded; HTTP/2 has
/// no `connection`, and headers named there are dropped with it.
pub(super) fn to_upstream(headers: &mut HeaderMap, may_be_http2: bool) {
    let trailers = tokens(headers, TE).any(|token| token.eq_ignore_ascii_case("trailers"));
    to_client(headers);
    headers.remove(HOST);
    headers.remove(EXPECT);
    join_cookies(headers);
    let own = |name: &&HeaderName| name.as_str().starts_with(OWN_PREFIX);
    for name in headers.keys().filter(own).cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if !may_be_http2 {
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
    }
}

/// Joins cookies into one header; HTTP/2 may split them (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let lines: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if lines.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

/// Turns the headers of an upstream's response into those of the response to the client.
///
/// `trailer` is kept, because trailers are forwarded. A length beside a transfer coding is removed: it is not
/// that of the body (RFC 9112, 6.3).
pub(super) fn to_client(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let named: Vec<HeaderName> =
        tokens(headers, CONNECTION).filter_map(|token| token.parse().ok()).collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Requests an uncompressed response, whose usage can be read.
pub(super) fn request_identity(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Tells the client not to retry, because the proxy has already retried.
pub(super) fn prevent_retry(headers: &mut HeaderMap) {
    headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
}

/// Returns true for a request from a browser. Only browsers send these headers: the first to `https` and
/// loopback hosts, the second for navigation.
pub(super) fn are_from_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(SEC_FETCH_DEST) || headers.contains_key(UPGRADE_INSECURE_REQUESTS)
}

/// Prevents a response from running as a page of this server's origin.
pub(super) fn sandbox(headers: &mut HeaderMap) {
    // Browsers enforce all policies of a response.
    headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Returns true for a WebSocket request, which cannot be forwarded. Other upgrades, such as HTTP/2, may
/// be ignored.
pub(super) fn is_websocket(headers: &HeaderMap) -> bool {
    tokens(headers, UPGRADE).any(|token| token.eq_ignore_ascii_case("websocket"))
}

/// Returns the elements of a list header.
fn tokens(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

static HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Tells the official SDKs whether to retry a request.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The prefix of headers for this server.
const OWN_PREFIX: &str = "x-paceline-";
