use http::Request;

use crate::middleware::PeekBody;

/// A request that may be sent more than once.
///
/// `http` requests are as their [bodies](PeekBody::replay) are; reqwest's as
/// `reqwest::Request::try_clone` says. A request of your own, for a service of your own, implements
/// it:
///
/// ```
/// use tollgate::middleware::Replay;
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
    message = "the rate-limit layer can't send a `{Self}` again",
    note = "an HTTP request's body must be in memory (`PeekBody`): put a `BufferBodyLayer` around the layer",
    note = "a request of your own implements `Replay`; without `.retry(n)` it needn't"
)]
pub trait Replay: Sized {
    /// The same request once more; `None` where its body can be sent only once.
    fn replay(&self) -> Option<Self>;
}

impl<B: PeekBody> Replay for Request<B> {
    /// With its extensions: what it [asks](crate::middleware::Ask) for, and its
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
