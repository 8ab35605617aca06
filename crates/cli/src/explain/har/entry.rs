use std::fmt;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Deserialize;

use super::body::Payload;
use super::end_time;
use super::headers::NameValueList;
use super::lenient::{Text, lenient};
use paceline::Timestamp;

/// A recorded exchange.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Entry {
    /// The request.
    pub request: Request,
    /// The response.
    pub response: Response,
    /// The time at which the response ended: `startedDateTime` plus `time`, else the `date` of the
    /// response. `None` if neither is given, or for the Unix epoch, which tools write for an unknown
    /// time.
    pub ended_at: Option<Timestamp>,
}

/// A request. `Debug` shows neither headers, query nor body.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The valid headers, without HTTP/2 pseudo-headers.
    pub headers: HeaderMap,
    /// The body; empty if not recorded.
    pub body: Vec<u8>,
}

/// A response. `Debug` shows neither headers nor body.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Response {
    /// The status; 0 without a response.
    pub status: u16,
    /// The valid headers, without HTTP/2 pseudo-headers. A missing `content-type` is that of the
    /// recorded content.
    pub headers: HeaderMap,
    /// The decoded body; empty if not recorded.
    pub body: Vec<u8>,
}

impl Entry {
    /// Returns false for an entry that is no exchange with a provider: a preflight (`OPTIONS`), or an image, font,
    /// script, style or document that a page has loaded.
    pub fn is_exchange(&self) -> bool {
        let Self { request, response, .. } = self;
        let kind = response.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let path = request.url.split(['?', '#']).next().unwrap_or_default();
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        match request.method.to_ascii_uppercase().as_str() {
            "OPTIONS" => false,
            "GET" | "HEAD" => {
                !PAGE_TYPES.iter().any(|start| kind.starts_with(start))
                    && !PAGE_EXTENSIONS.contains(&extension)
            }
            _ => true,
        }
    }
}

/// The beginnings of the content types of a page's parts.
const PAGE_TYPES: [&str; 7] = [
    "image/",
    "font/",
    "text/css",
    "text/html",
    "text/javascript",
    "application/javascript",
    "application/font",
];

/// The file extensions of a page's parts, whose content type is missing if a cache answers.
const PAGE_EXTENSIONS: [&str; 10] =
    ["png", "jpg", "jpeg", "gif", "svg", "ico", "webp", "css", "js", "woff2"];

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url.split(['?', '#']).next())
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// An entry as recorded.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawEntry {
    #[serde(deserialize_with = "lenient")]
    pub(super) request: RawRequest,
    #[serde(deserialize_with = "lenient")]
    pub(super) response: RawResponse,
    #[serde(deserialize_with = "lenient")]
    pub(super) started_date_time: Text,
    #[serde(deserialize_with = "lenient")]
    pub(super) time: f64,
}

impl From<RawEntry> for Entry {
    fn from(raw: RawEntry) -> Self {
        let response = raw.response.into_response();
        let ended = end_time::ended(&raw.started_date_time.into_string(), raw.time);
        Self {
            request: raw.request.into_request(),
            ended_at: ended.or_else(|| end_time::date(&response.headers)),
            response,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawRequest {
    #[serde(deserialize_with = "lenient")]
    method: Text,
    #[serde(deserialize_with = "lenient")]
    url: Text,
    #[serde(deserialize_with = "lenient")]
    headers: NameValueList,
    #[serde(deserialize_with = "lenient")]
    post_data: Payload,
}

impl RawRequest {
    fn into_request(self) -> Request {
        Request {
            method: self.method.into_string(),
            url: self.url.into_string(),
            headers: self.headers.into_map(),
            body: self.post_data.into_bytes(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawResponse {
    #[serde(deserialize_with = "lenient")]
    status: f64,
    #[serde(deserialize_with = "lenient")]
    headers: NameValueList,
    #[serde(deserialize_with = "lenient")]
    content: Payload,
}

impl RawResponse {
    fn into_response(self) -> Response {
        let mut headers = self.headers.into_map();
        if let Ok(kind) = HeaderValue::from_str(self.content.mime_type()) {
            headers.entry(CONTENT_TYPE).or_insert(kind);
        }
        // Without a response, Charles writes 0 and mitmproxy -1 or nothing; the cast saturates.
        Response { status: self.status as u16, headers, body: self.content.into_bytes() }
    }
}
