use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::answer::StaticBody;

/// Handles `GET /`: the page, a single file that only connects to this server's events.
pub(super) async fn get(request: HeaderMap) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
    ];
    (headers, SECURITY_HEADERS, BODY.response(&request)).into_response()
}

/// The content security policy: only the embedded script and styles are allowed.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let (script, style) = (hash("script"), hash("style"));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
         img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("the policy is ASCII")
});

/// Returns the hash of the page's element with this name, for the policy.
fn hash(element: &str) -> String {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let inside = PAGE.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
    let (inside, _) = inside.expect("the page has the element");
    STANDARD.encode(Sha256::digest(inside.as_bytes()))
}

static BODY: LazyLock<StaticBody> = LazyLock::new(|| StaticBody::new(PAGE));

const PAGE: &str = include_str!("page.html");

/// The security headers of all responses.
pub(super) const SECURITY_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (axum::http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (axum::http::header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (axum::http::header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];
