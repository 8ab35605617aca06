use std::fmt;

use http::{Extensions, HeaderMap, Method, Uri};

/// The head of a request, passed to closures that return its key or its cost.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// The request's URI.
    pub uri: &'a Uri,
    /// The request's header fields.
    pub headers: &'a HeaderMap,
    /// The request's extensions, as set by outer layers.
    pub extensions: &'a Extensions,
}

impl<'a> Head<'a> {
    /// Returns the head of `request`.
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
    /// Omits the header fields and the query, which can hold API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("method", &self.method)
            .field("path", &self.uri.path())
            .finish_non_exhaustive()
    }
}
