//! Fields that are meant for the next hop alone (RFC 9110, 7.6.1), and those that are ours.

use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE, EXPECT, HOST, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, UPGRADE_INSECURE_REQUESTS,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Makes the fields of a client's request those of the request to its upstream. The client below
/// writes the upstream's `host`.
///
/// `expect` has been answered: the whole body is here. Who takes trailers is told on; HTTP/2 has no
/// `connection`, and what one names would be dropped with it.
pub(super) fn to_upstream(headers: &mut HeaderMap, may_be_http2: bool) {
    let trailers = tokens(headers, TE).any(|token| token.eq_ignore_ascii_case("trailers"));
    to_client(headers);
    headers.remove(HOST);
    headers.remove(EXPECT);
    join_cookies(headers);
    let own = |name: &&HeaderName| name.as_str().starts_with(OWN);
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

/// Cookies stand in one field but in HTTP/2, which may send each in one of its own (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let lines: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if lines.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

/// Makes the fields of an upstream's answer those of the answer to the client.
///
/// `trailer` stays: it tells of the fields that follow the body, which pass too.
pub(super) fn to_client(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        tokens(headers, CONNECTION).filter_map(|token| token.parse().ok()).collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Asks for an answer that can be read in passing.
pub(super) fn uncompressed(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Tells a client that another try is of no use: there was more than one.
pub(super) fn tried_enough(headers: &mut HeaderMap) {
    headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
}

/// Whether a browser asks: no other client sends these. The first is sent to who is asked by `https` or
/// is this machine, the other wherever a page is opened.
pub(super) fn are_of_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(SEC_FETCH_DEST) || headers.contains_key(UPGRADE_INSECURE_REQUESTS)
}

/// Keeps what a browser gets from running as a page of this server, whose storage is another's.
pub(super) fn sandbox(headers: &mut HeaderMap) {
    // Of several policies all count.
    headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Whether another protocol is asked for that can't pass. A server may ignore other offers, as that
/// of HTTP/2.
pub(super) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    tokens(headers, UPGRADE).any(|token| token.eq_ignore_ascii_case("websocket"))
}

/// The elements of a field that is a list.
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

/// By which providers tell the official SDKs whether to send a request again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Fields with these first letters are for this server alone.
const OWN: &str = "x-tollgate-";
