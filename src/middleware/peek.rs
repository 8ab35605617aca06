use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;

/// A request body that may be in memory, to be read without being used up.
pub trait PeekBody {
    /// Gives `read` the whole body, or `None` if it isn't in memory.
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T;

    /// How many bytes it has, if that is known.
    fn size(&self) -> Option<u64> {
        self.peek(|body| body.and_then(|body| body.len().try_into().ok()))
    }

    /// Whether trailers follow the bytes. Default: none do.
    fn has_trailers(&self) -> bool {
        false
    }

    /// The same body once more, for a request that is [sent again](super::RateLimitLayer::retry);
    /// `None` if it can be sent only once. Default: `None`.
    fn replay(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// How many bytes the body has that comes with these headers, if they say so.
pub(super) fn stated_size(headers: &HeaderMap) -> Option<u64> {
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
    /// A `Full` has no accessor; a clone shares its bytes, and gives them up in its one frame.
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
