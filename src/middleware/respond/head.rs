use std::fmt;

use http::{Extensions, HeaderMap, Method, Uri};

/// A request without its body, for closures that say whose it is and what it costs.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Head<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its URI.
    pub uri: &'a Uri,
    /// Its header fields.
    pub headers: &'a HeaderMap,
    /// What layers further out have put into it.
    pub extensions: &'a Extensions,
}

impl<'a> Head<'a> {
    /// The head of this request.
    pub fn of<B>(request: &'a http::Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

impl fmt::Debug for Head<'_> {
    /// Without header fields and query: they hold API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("method", &self.method)
            .field("path", &self.uri.path())
            .finish_non_exhaustive()
    }
}
