use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;

/// A request body that can be read without consuming it, if it is in memory.
pub trait PeekBody {
    /// Calls `read` with the entire body, or with `None` if it isn't in memory.
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T;

    /// Returns the size of the body in bytes, if it is known.
    fn size(&self) -> Option<u64> {
        self.peek(|body| body.and_then(|body| body.len().try_into().ok()))
    }

    /// Returns `true` if trailers follow the bytes. Default: `false`.
    fn has_trailers(&self) -> bool {
        false
    }

    /// Returns a copy of the body for a [retry](super::RateLimitLayer::retry), or `None` if the body
    /// can be sent only once. Default: `None`.
    fn replay(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// Returns the `content-length`, if the headers contain a valid one.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl PeekBody for () {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(Some(&[]))
    }

    fn replay(&self) -> Option<Self> {
        Some(())
    }
}

impl PeekBody for Bytes {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(Some(self))
    }

    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl PeekBody for Vec<u8> {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(Some(self))
    }

    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl PeekBody for String {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(Some(self.as_bytes()))
    }

    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl PeekBody for http_body_util::Full<Bytes> {
    /// Polls a clone for its one frame, since `Full` has no accessor. The clone shares the bytes.
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        use http_body::Body;
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let frame = std::pin::Pin::new(&mut self.clone()).poll_frame(&mut cx);
        match frame {
            std::task::Poll::Ready(Some(Ok(frame))) => read(frame.data_ref().map(|data| &**data)),
            _ => read(Some(&[])),
        }
    }

    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl PeekBody for http_body_util::Empty<Bytes> {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(Some(&[]))
    }

    fn replay(&self) -> Option<Self> {
        Some(Self::new())
    }
}
