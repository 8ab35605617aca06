use std::fmt;
use std::task::{Context, Poll};

use http::Request;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tower_layer::Layer;
use tower_service::Service;

use super::peek::PeekBody;

/// A layer that requests usage in streamed responses. It adds `"stream_options": {"include_usage": true}`
/// to chat and text completions in OpenAI's format with `"stream": true`, unless the request sets
/// `include_usage` itself. Add it outside a [`RateLimitLayer`](super::RateLimitLayer), which then settles with the
/// actual usage instead of the reserved cost.
///
/// The caller receives one more chunk before `[DONE]`, with `"choices": []` and the usage; code that
/// reads `choices[0]` of every chunk without a check fails on it. The rest of the request is forwarded
/// byte for byte, except for its `content-length`. The layer doesn't change a body that is not in
/// memory, has trailers, is not JSON or contains an option twice.
///
/// Add it outside a layer that signs requests. The layer doesn't change a request that carries a
/// digest of its body (`content-digest`, `digest`, `content-md5`, `x-amz-content-sha256`); a request
/// that is signed in another way would be rejected after the change.
///
/// The server must support the option. OpenAI, Azure, Groq, Mistral and most compatible servers do;
/// some older servers respond with 400.
///
/// ```
/// use paceline::middleware::{IncludeUsageLayer, RateLimitLayer};
/// use tower::{ServiceBuilder, service_fn};
/// # async fn send(_: http::Request<String>) -> Result<http::Response<String>, std::convert::Infallible> {
/// #     Ok(http::Response::new("{}".into()))
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let limiter = paceline::Limiter::builder().build()?;
/// let client = ServiceBuilder::new()
///     .layer(IncludeUsageLayer::new())
///     .layer(RateLimitLayer::new(limiter))
///     .service_fn(send);
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct IncludeUsageLayer(());

/// A service that requests usage in streamed responses. Created by [`IncludeUsageLayer`].
#[derive(Clone)]
pub struct IncludeUsage<S>(S);

/// A request whose body can be replaced.
pub trait Rewrite {
    /// Returns the path of its URL.
    fn path(&self) -> &str;

    /// Replaces the body with the result of `change`. Does nothing if the body isn't in memory or
    /// `change` returns `None`.
    fn rewrite(&mut self, change: impl FnOnce(&[u8]) -> Option<String>);
}

impl IncludeUsageLayer {
    /// Creates the layer.
    pub fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for IncludeUsageLayer {
    type Service = IncludeUsage<S>;

    fn layer(&self, inner: S) -> IncludeUsage<S> {
        IncludeUsage(inner)
    }
}

impl<S, R> Service<R> for IncludeUsage<S>
where
    S: Service<R>,
    R: Rewrite,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: R) -> S::Future {
        ask_for_usage(&mut request);
        self.0.call(request)
    }
}

impl<S> fmt::Debug for IncludeUsage<S> {
    /// Omits the inner service, whose output may contain API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncludeUsage").finish_non_exhaustive()
    }
}

impl<B: PeekBody + From<String>> Rewrite for Request<B> {
    fn path(&self) -> &str {
        self.uri().path()
    }

    fn rewrite(&mut self, change: impl FnOnce(&[u8]) -> Option<String>) {
        if has_digest(self.headers()) || self.body().has_trailers() {
            return;
        }
        if let Some(body) = self.body().peek(|body| body.and_then(change)) {
            update_content_length(self.headers_mut(), body.len());
            *self.body_mut() = body.into();
        }
    }
}

#[cfg(feature = "reqwest")]
impl Rewrite for reqwest::Request {
    fn path(&self) -> &str {
        self.url().path()
    }

    fn rewrite(&mut self, change: impl FnOnce(&[u8]) -> Option<String>) {
        if has_digest(self.headers()) {
            return;
        }
        let Some(body) = self.body().and_then(|body| body.as_bytes()).and_then(change) else {
            return;
        };
        update_content_length(self.headers_mut(), body.len());
        *self.body_mut() = Some(body.into());
    }
}

/// Returns `true` if a header contains a digest of the body, so that the body must not change.
fn has_digest(headers: &HeaderMap) -> bool {
    DIGESTS.iter().any(|name| headers.contains_key(*name))
}

/// Sets an existing `content-length` to the length of the new body.
fn update_content_length(headers: &mut HeaderMap, bytes: usize) {
    if let Some(size) = headers.get_mut(CONTENT_LENGTH) {
        *size = HeaderValue::from(bytes);
    }
}

/// Adds the option as [`IncludeUsageLayer`] does, also to a request that sets it to `false`. Returns `true` if
/// the request was changed, so that its client doesn't expect the chunk of usage:
/// [`WithoutUsageChunk`](super::WithoutUsageChunk) removes it.
///
/// ```
/// use paceline::middleware::request_usage;
/// let body = r#"{"model": "gpt-4o", "stream": true}"#.to_owned();
/// let mut request = http::Request::post("/v1/chat/completions").body(body)?;
/// assert!(request_usage(&mut request));
/// assert!(request.body().contains(r#""stream_options":{"include_usage":true}"#));
/// assert!(!request_usage(&mut request));
/// # Ok::<(), http::Error>(())
/// ```
pub fn request_usage(request: &mut impl Rewrite) -> bool {
    let mut is_changed = false;
    rewrite(request, |body| {
        let changed = with_usage(body, true);
        is_changed = changed.is_some();
        changed
    });
    is_changed
}

/// Adds the option, unless the request sets it.
pub(super) fn ask_for_usage(request: &mut impl Rewrite) {
    rewrite(request, |body| with_usage(body, false));
}

/// Rewrites chat and text completions; both paths end in `/completions`.
fn rewrite(request: &mut impl Rewrite, change: impl FnOnce(&[u8]) -> Option<String>) {
    if request.path().trim_end_matches('/').ends_with("/completions") {
        request.rewrite(|body| {
            // Most requests don't stream, which is found faster than by parsing.
            memchr::memmem::find(body, b"\"stream\"")?;
            change(body)
        });
    }
}

/// The fields of a request that decide whether to add the option. A duplicate field is an error.
#[derive(Deserialize)]
struct StreamFields<'a> {
    stream: Option<bool>,
    #[serde(default, borrow, deserialize_with = "keep_null")]
    stream_options: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamOptions<'a> {
    #[serde(default, borrow, deserialize_with = "keep_null")]
    include_usage: Option<&'a RawValue>,
}

/// Deserializes `null` as `Some`, to distinguish it from an absent field.
fn keep_null<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// Returns the body with the option added, or `None` if the body must not change. `overrides` is `true` if an
/// option that is not `true` is replaced.
fn with_usage(body: &[u8], overrides: bool) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let (blank, members) = text.split_once('{')?;
    let wanted: StreamFields<'_> = serde_json::from_str(text).ok()?;
    if wanted.stream != Some(true) || !blank.trim().is_empty() {
        return None;
    }
    let Some(options) = wanted.stream_options else {
        return Some([blank, "{", STREAM_OPTIONS, members].concat());
    };
    let raw = options.get();
    let (before, after) = around(text, raw)?;
    if raw == "null" {
        return Some([before, "{", OPTION, "}", after].concat());
    }
    let members = raw.strip_prefix('{')?;
    let options: StreamOptions<'_> = serde_json::from_str(raw).ok()?;
    if let Some(own) = options.include_usage {
        let is_replaced = overrides && own.get() != "true";
        let (before, after) = around(text, own.get()).filter(|_| is_replaced)?;
        return Some([before, "true", after].concat());
    }
    let comma = if members.trim_start().starts_with('}') { "" } else { "," };
    Some([before, "{", OPTION, comma, members, after].concat())
}

/// Returns the text before and after a part of it.
fn around<'a>(text: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    let at = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some((text.get(..at)?, text.get(at + part.len()..)?))
}

const DIGESTS: &[&str] = &["content-digest", "digest", "content-md5", "x-amz-content-sha256"];
const OPTION: &str = r#""include_usage":true"#;
const STREAM_OPTIONS: &str = r#""stream_options":{"include_usage":true},"#;
