use std::fmt;
use std::task::{Context, Poll};

use http::Request;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tower_layer::Layer;
use tower_service::Service;

use super::peek::PeekBody;

/// Asks for the usage of streams that wouldn't tell it: a chat or text completion in OpenAI's format
/// with `"stream": true` gets `"stream_options": {"include_usage": true}`, unless it says itself
/// whether it wants that. Put it around a [`RateLimitLayer`](super::RateLimitLayer), which then
/// settles by what was used instead of by what was reserved.
///
/// The caller sees one more chunk before `[DONE]`, with `"choices": []` and the usage; code that
/// takes `choices[0]` of every chunk unseen breaks on it. All else of the request stays as it is, byte
/// for byte, but for its `content-length`. A body that is not in memory, has trailers, is not JSON or
/// names an option twice is left alone.
///
/// Put it around what signs requests: a request that carries a digest of its body (`content-digest`,
/// `digest`, `content-md5`, `x-amz-content-sha256`) is left alone, and one that is signed without
/// saying so would be refused.
///
/// Only for servers that know the option: OpenAI, Azure, Groq, Mistral's and most compatible ones
/// do; some older ones answer 400.
///
/// ```
/// use tollgate::middleware::{IncludeUsageLayer, RateLimitLayer};
/// use tower::{ServiceBuilder, service_fn};
/// # async fn send(_: http::Request<String>) -> Result<http::Response<String>, std::convert::Infallible> {
/// #     Ok(http::Response::new("{}".into()))
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let limiter = tollgate::Limiter::builder().build()?;
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

/// A service whose streams tell their usage; made by [`IncludeUsageLayer`].
#[derive(Clone)]
pub struct IncludeUsage<S>(S);

/// A request whose body may be put in the place of another.
pub trait Rewrite {
    /// The path of its URL.
    fn path(&self) -> &str;

    /// Puts in the place of its body what `change` makes of it, if it is in memory and `change` makes
    /// anything.
    fn rewrite(&mut self, change: impl FnOnce(&[u8]) -> Option<String>);
}

impl IncludeUsageLayer {
    /// A layer that asks for usage.
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
    /// Without the inner service, which may show its API keys.
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
            restate_size(self.headers_mut(), body.len());
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
        restate_size(self.headers_mut(), body.len());
        *self.body_mut() = Some(body.into());
    }
}

/// Whether the body must stay as it is for what the headers say of it.
fn has_digest(headers: &HeaderMap) -> bool {
    DIGESTS.iter().any(|name| headers.contains_key(*name))
}

/// Where the length was stated, it is that of the new body.
fn restate_size(headers: &mut HeaderMap, bytes: usize) {
    if let Some(size) = headers.get_mut(CONTENT_LENGTH) {
        *size = HeaderValue::from(bytes);
    }
}

/// Chats end so too.
pub(super) fn ask_for_usage(request: &mut impl Rewrite) {
    let path = request.path().trim_end_matches('/');
    if path.ends_with("/completions") {
        request.rewrite(with_usage);
    }
}

/// What is looked at in a request; all else stays unread. A name that stands there twice is an error.
#[derive(Deserialize)]
struct Wanted<'a> {
    stream: Option<bool>,
    #[serde(default, borrow, deserialize_with = "even_null")]
    stream_options: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Options<'a> {
    #[serde(default, borrow, deserialize_with = "even_null")]
    include_usage: Option<&'a RawValue>,
}

fn even_null<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// The request that asks for usage too; `None` where it stays as it is.
fn with_usage(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let (blank, members) = text.split_once('{')?;
    let wanted: Wanted<'_> = serde_json::from_str(text).ok()?;
    if wanted.stream != Some(true) || !blank.trim().is_empty() {
        return None;
    }
    let Some(options) = wanted.stream_options else {
        return Some([blank, "{", WHOLE, members].concat());
    };
    let raw = options.get();
    let at = (raw.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let (before, after) = (text.get(..at)?, text.get(at + raw.len()..)?);
    if raw == "null" {
        return Some([before, "{", OPTION, "}", after].concat());
    }
    let members = raw.strip_prefix('{')?;
    let said: Options<'_> = serde_json::from_str(raw).ok()?;
    if said.include_usage.is_some() {
        return None;
    }
    let comma = if members.trim_start().starts_with('}') { "" } else { "," };
    Some([before, "{", OPTION, comma, members, after].concat())
}

const DIGESTS: &[&str] = &["content-digest", "digest", "content-md5", "x-amz-content-sha256"];
const OPTION: &str = r#""include_usage":true"#;
const WHOLE: &str = r#""stream_options":{"include_usage":true},"#;
