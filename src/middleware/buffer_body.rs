use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::buffered_body::{BodyBuffer, BufferedBody};
use super::peek::content_length;

/// A layer that buffers request bodies, so that the inner [`RateLimitLayer`](super::RateLimitLayer) can
/// read the model and estimate the cost. Use it for bodies that aren't in memory: streams,
/// `axum::body::Body`, `hyper::body::Incoming` and boxed bodies (`Box::pin` a body that isn't `Unpin`).
///
/// A body up to the bound is read completely. A longer body, or one that fails, is forwarded: first
/// the bytes that were read, then the remaining frames as they arrive. Its cost is estimated from its
/// size, or from the lower bound of its size if the size is unknown.
///
/// Each request needs at most twice the bound of memory (a buffer grows by doubling) plus one frame, and
/// none if the body states a length above the bound. The layer limits neither the length of a body nor
/// the time that it takes. A request is queued for admission only after its body has been read.
///
/// ```
/// use paceline::middleware::{BufferBodyLayer, RateLimitLayer};
/// use tower::ServiceBuilder;
/// # use http_body_util::combinators::BoxBody;
/// # use bytes::Bytes;
/// # async fn send(_: http::Request<paceline::middleware::BufferedBody<BoxBody<Bytes, std::io::Error>>>)
/// #     -> Result<http::Response<BoxBody<Bytes, std::io::Error>>, std::io::Error> { todo!() }
/// # async fn example(limiter: paceline::Limiter, request: http::Request<BoxBody<Bytes, std::io::Error>>)
/// #     -> Result<(), Box<dyn std::error::Error>> {
/// # use tower::{service_fn, ServiceExt};
/// # let client = service_fn(send);
/// let client = ServiceBuilder::new()
///     .layer(BufferBodyLayer::new())
///     .layer(RateLimitLayer::new(limiter))
///     .service(client);
/// let response = client.oneshot(request).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BufferBodyLayer {
    bound: usize,
}

/// A service that buffers request bodies. Created by [`BufferBodyLayer`].
#[derive(Clone)]
pub struct BufferBody<S> {
    inner: S,
    bound: usize,
}

pin_project! {
    /// The future of [`BufferBody`].
    ///
    /// # Cancel safety
    /// Dropping the future while the body is being read drops the request before the inner service has
    /// seen it.
    pub struct BufferBodyFuture<S, B>
    where
        B: Body,
        S: Service<Request<BufferedBody<B>>>,
    {
        #[pin]
        stage: Stage<S::Future, B>,
        inner: S,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F, B>
    where
        B: Body,
    {
        Buffering { parts: Option<http::request::Parts>, body: BodyBuffer<B> },
        // The body has been read; the inner service is not ready yet.
        Readying { request: Option<Request<BufferedBody<B>>> },
        Called { #[pin] future: F },
    }
}

impl BufferBodyLayer {
    /// Creates a layer that buffers up to 1 MiB of each body.
    pub fn new() -> Self {
        Self { bound: DEFAULT_BOUND }
    }

    /// Sets the number of bytes to buffer of each body.
    #[must_use]
    pub fn with_bound(self, bytes: usize) -> Self {
        Self { bound: bytes }
    }
}

impl Default for BufferBodyLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for BufferBodyLayer {
    type Service = BufferBody<S>;

    fn layer(&self, inner: S) -> BufferBody<S> {
        BufferBody { inner, bound: self.bound }
    }
}

impl<S, B> Service<Request<B>> for BufferBody<S>
where
    B: Body<Data = Bytes> + Unpin,
    S: Service<Request<BufferedBody<B>>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BufferBodyFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // A body may arrive slowly: release the readiness meanwhile, so that other requests can use it.
        let inner = self.inner.clone();
        self.inner = inner.clone();
        let (parts, body) = request.into_parts();
        let content_length = content_length(&parts.headers);
        let body = BodyBuffer::new(body, self.bound, content_length);
        BufferBodyFuture { stage: Stage::Buffering { parts: Some(parts), body }, inner }
    }
}

impl<S, B> Future for BufferBodyFuture<S, B>
where
    B: Body<Data = Bytes> + Unpin,
    S: Service<Request<BufferedBody<B>>>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::Buffering { parts, body } => {
                    let body = ready!(body.poll_buffered(cx));
                    let parts = parts.take().expect(ONCE);
                    Stage::Readying { request: Some(Request::from_parts(parts, body)) }
                }
                StageProjection::Readying { request } => {
                    ready!(this.inner.poll_ready(cx))?;
                    Stage::Called { future: this.inner.call(request.take().expect(ONCE)) }
                }
                StageProjection::Called { future } => return future.poll(cx),
            };
            this.stage.set(next);
        }
    }
}

impl<S> fmt::Debug for BufferBody<S> {
    /// Omits the inner service, whose output may contain API keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferBody").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl<S, B> fmt::Debug for BufferBodyFuture<S, B>
where
    B: Body,
    S: Service<Request<BufferedBody<B>>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Buffering { .. } => "buffering",
            Stage::Readying { .. } => "readying",
            Stage::Called { .. } => "called",
        };
        f.debug_struct("BufferBodyFuture").field("stage", &stage).finish_non_exhaustive()
    }
}

/// The default bound: 1 MiB, longer than the longest prompt in common use, images aside.
const DEFAULT_BOUND: usize = 1 << 20;

const ONCE: &str = "each stage is completed once";
