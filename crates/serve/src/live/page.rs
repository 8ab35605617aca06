use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The page: one file, which asks for nothing but this server's events.
pub(super) async fn page() -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
    ];
    (headers, SAFE, PAGE).into_response()
}

/// What it may do: run the script and use the styles that it came with, and nothing else.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let (script, style) = (hash("script"), hash("style"));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
         img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("Base64 and names are fit for a header")
});

/// The hash of the one element of this name, which browsers compare with what they are to run.
fn hash(element: &str) -> String {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let inside = PAGE.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
    let (inside, _) = inside.expect("the page has one");
    STANDARD.encode(Sha256::digest(inside.as_bytes()))
}

const PAGE: &str = include_str!("page.html");

/// What every answer says here.
pub(super) const SAFE: [(HeaderName, HeaderValue); 3] = [
    (axum::http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (axum::http::header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (axum::http::header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];
