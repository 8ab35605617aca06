//! What is seen of connections to upstreams, so that a request which met one that its upstream had
//! just closed is sent again.
//!
//! hyper's client itself sends a request again that it had not begun to write. Of one that was written
//! it can't say whether the upstream has read it; the connection can, where the upstream had ended it
//! before its system refused the bytes. A reset alone says nothing: it may cut off a request that the
//! upstream works on.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use axum::http::{Extensions, Method, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

use tollgate::middleware::BoxError;

/// Opens connections that are watched.
#[derive(Clone)]
pub(super) struct Connector(pub(super) HttpsConnector<HttpConnector>);

/// A connection that notes how far its exchange has come.
pub(super) struct Pooled {
    stream: TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>,
    stage: Stage,
}

/// How far the exchange of a connection has come.
#[derive(Clone)]
struct Stage(Arc<AtomicU8>);

/// Nothing was read yet: what fails here is no matter of a pool.
const NEW: u8 = 0;
/// Something was read since the last write: an answer, after which the connection may idle.
const ANSWERED: u8 = 1;
/// A further request was written, at least in part, and nothing read since.
const WRITTEN: u8 = 2;
/// The upstream's system has refused a further request: nobody has read it whole.
const REFUSED: u8 = 3;

/// Whether a request that failed so met a connection that its upstream had closed, and can be sent
/// again: nobody has read it, or to read it twice is as good as once.
pub(super) fn met_closed(error: &legacy::Error, method: &Method) -> bool {
    let Some(connected) = error.connect_info().filter(|info| !info.is_negotiated_h2()) else {
        return false;
    };
    let mut extras = Extensions::new();
    connected.get_extras(&mut extras);
    match extras.get::<Stage>().map(Stage::get) {
        Some(REFUSED) => true,
        Some(WRITTEN) => method.is_idempotent(),
        _ => false,
    }
}

impl Stage {
    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    fn has_written(&self, written: &io::Result<usize>) {
        match (self.get(), written) {
            (ANSWERED, Ok(1..)) => self.set(WRITTEN),
            (ANSWERED, Err(error)) if is_reset(error) => self.set(REFUSED),
            (WRITTEN, Err(error)) if had_ended(error) => self.set(REFUSED),
            _ => {}
        }
    }
}

impl Pooled {
    /// The end of what the upstream sends: the system knows whether a reset came after it, since the
    /// upstream had closed before it was written to.
    fn has_ended(&self) {
        let tcp = match self.stream.inner() {
            MaybeHttpsStream::Http(tcp) => tcp.inner(),
            MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner().inner(),
        };
        if self.stage.get() == WRITTEN && matches!(tcp.take_error(), Ok(Some(_)) | Err(_)) {
            self.stage.set(REFUSED);
        }
    }
}

impl AsyncRead for Pooled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        match &read {
            Ok(()) if buffer.filled().len() > before => self.stage.set(ANSWERED),
            Ok(()) => self.has_ended(),
            Err(error) if had_ended(error) && self.stage.get() == WRITTEN => {
                self.stage.set(REFUSED)
            }
            // TLS that ends without its own word for it.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.has_ended(),
            Err(_) => {}
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Pooled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.stage.has_written(&written);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts));
        self.stage.has_written(&written);
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Connection for Pooled {
    fn connected(&self) -> Connected {
        self.stream.inner().connected().extra(self.stage.clone())
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Pooled>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let opened = self.0.call(uri);
        Box::pin(async move {
            let stream = opened.await?;
            let (stream, stage) = (TokioIo::new(stream), Stage(Arc::new(AtomicU8::new(NEW))));
            Ok(TokioIo::new(Pooled { stream, stage }))
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Whether a connection was reset that its upstream had ended before: the system tells such a reset from
/// others (tcp(7), EPIPE).
fn had_ended(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}

fn is_reset(error: &io::Error) -> bool {
    let resets = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::ConnectionAborted];
    resets.contains(&error.kind())
}
