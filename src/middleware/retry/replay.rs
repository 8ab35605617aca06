use http::Request;

use crate::middleware::PeekBody;

/// A request that may be sent more than once.
///
/// An `http` request can be replayed if its [body](PeekBody::replay) can, and a reqwest one if
/// `reqwest::Request::try_clone` succeeds. The request type of a custom service implements this trait:
///
/// ```
/// use paceline::middleware::Replay;
/// #[derive(Clone)]
/// struct Prompt(String);
///
/// impl Replay for Prompt {
///     fn replay(&self) -> Option<Self> {
///         Some(self.clone())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the rate-limit layer can't retry a `{Self}`",
    note = "the body of an HTTP request must be in memory (`PeekBody`): put a `BufferBodyLayer` around the layer",
    note = "implement `Replay` for a custom request type; `.retry(n)` requires it"
)]
pub trait Replay: Sized {
    /// Returns a copy of the request, or `None` if its body can be sent only once.
    fn replay(&self) -> Option<Self>;
}

impl<B: PeekBody> Replay for Request<B> {
    /// Keeps the extensions, such as [`Ask`](crate::middleware::Ask) and
    /// [`Journey`](crate::middleware::Journey).
    fn replay(&self) -> Option<Self> {
        let mut request = Self::new(self.body().replay()?);
        *request.method_mut() = self.method().clone();
        *request.uri_mut() = self.uri().clone();
        *request.version_mut() = self.version();
        *request.headers_mut() = self.headers().clone();
        *request.extensions_mut() = self.extensions().clone();
        Some(request)
    }
}

#[cfg(feature = "reqwest")]
impl Replay for reqwest::Request {
    fn replay(&self) -> Option<Self> {
        self.try_clone()
    }
}
