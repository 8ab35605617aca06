//! Connections to upstreams that track the progress of each exchange, so that a request sent on a
//! connection which the upstream had just closed can be sent again.
//!
//! hyper's client retries a request that it had not begun to write. For one that was written it cannot
//! know whether the upstream has read it; the connection can, if the upstream had closed it before its
//! system rejected the bytes. A reset alone proves less: the upstream closed the connection with unread
//! bytes, but something between may have reset a request that it is processing. Soon after the request was
//! sent, it is the race of the request with the end of an idle connection.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::{Extensions, Method, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use paceline::middleware::BoxError;

/// Opens [`TrackedStream`]s.
#[derive(Clone)]
pub(super) struct Connector(pub(super) HttpsConnector<HttpConnector>);

/// A connection that tracks the progress of its exchange.
pub(super) struct TrackedStream {
    stream: TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>,
    stage: Stage,
    /// The wait for a reset after the end of the stream.
    reset: Option<Pin<Box<Sleep>>>,
}

/// The progress of an exchange, shared with the pool.
#[derive(Clone)]
struct Stage(Arc<AtomicU8>);

/// Nothing was read yet: the connection has not been reused.
const NEW: u8 = 0;
/// A response was read after the last write; the connection may become idle.
const ANSWERED: u8 = 1;
/// A further request was written, at least in part, and nothing was read since.
const WRITTEN: u8 = 2;
/// The upstream's system rejected a further request, so that the upstream cannot have read it
/// completely.
const REFUSED: u8 = 3;
/// The connection was reset after a further request was written, and before anything was read.
const RESET: u8 = 4;
/// The first request was written, at least in part, and nothing was read. The connection may have been idle before: the
/// pool opens one more than it needs where another becomes free meanwhile.
const WRITTEN_FIRST: u8 = 5;

/// Returns true if a failed request was sent on a connection that the upstream had closed, and can be
/// sent again: the upstream cannot have read it, or the method is idempotent. `is_early` is true soon after
/// the request was sent.
pub(super) fn is_resendable(error: &legacy::Error, method: &Method, is_early: bool) -> bool {
    let Some(connected) = error.connect_info().filter(|info| !info.is_negotiated_h2()) else {
        return false;
    };
    let mut extras = Extensions::new();
    connected.get_extras(&mut extras);
    match extras.get::<Stage>().map(Stage::get) {
        Some(REFUSED) => true,
        Some(RESET) => is_early || method.is_idempotent(),
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

    /// Returns whether a request was written, and nothing was read since.
    fn is_written(&self) -> bool {
        matches!(self.get(), WRITTEN_FIRST | WRITTEN)
    }

    fn record_write(&self, written: &io::Result<usize>) {
        match (self.get(), written) {
            (NEW, Ok(1..)) => self.set(WRITTEN_FIRST),
            (ANSWERED, Ok(1..)) => self.set(WRITTEN),
            (NEW | ANSWERED, Err(error)) if is_reset(error) => self.set(REFUSED),
            (WRITTEN_FIRST | WRITTEN, Err(error)) if is_reset_after_close(error) => {
                self.set(REFUSED);
            }
            (WRITTEN, Err(error)) if is_reset(error) => self.set(RESET),
            _ => {}
        }
    }
}

impl TrackedStream {
    /// Records the end of the stream. A socket error means that a reset followed, because the upstream had
    /// closed the connection before the write. The reset takes a round trip.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.stage.is_written() {
            if matches!(self.tcp().take_error(), Ok(Some(_)) | Err(_)) {
                self.stage.set(REFUSED);
            } else if self.reset.as_ref().is_some_and(|reset| reset.is_elapsed()) {
                break;
            } else {
                let reset = self.reset.get_or_insert_with(|| Box::pin(sleep(ROUND_TRIP)));
                ready!(reset.as_mut().poll(cx));
            }
        }
        Poll::Ready(())
    }

    fn tcp(&self) -> &TcpStream {
        match self.stream.inner() {
            MaybeHttpsStream::Http(tcp) => tcp.inner(),
            MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner().inner(),
        }
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        match &read {
            Ok(()) if buffer.filled().len() > before => self.stage.set(ANSWERED),
            Ok(()) => ready!(self.poll_end(cx)),
            Err(error) if is_reset_after_close(error) && self.stage.is_written() => {
                self.stage.set(REFUSED)
            }
            Err(error) if is_reset(error) && self.stage.get() == WRITTEN => self.stage.set(RESET),
            // TLS without a close notification.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => ready!(self.poll_end(cx)),
            Err(_) => {}
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.stage.record_write(&written);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts));
        self.stage.record_write(&written);
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

impl Connection for TrackedStream {
    fn connected(&self) -> Connected {
        self.stream.inner().connected().extra(self.stage.clone())
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TrackedStream>;
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
            Ok(TokioIo::new(TrackedStream { stream, stage, reset: None }))
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Returns true for a reset after the upstream had closed the connection, which the system reports
/// differently from other resets (tcp(7), EPIPE).
fn is_reset_after_close(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}

fn is_reset(error: &io::Error) -> bool {
    let resets = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::ConnectionAborted];
    resets.contains(&error.kind())
}

/// The longest time for which the end of a connection waits for a reset.
const ROUND_TRIP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn first_request_on_a_closed_connection_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let tcp = TcpStream::connect(address).await.expect("a connection");
        drop(listener.accept().await.expect("a connection"));
        // The end of the stream has arrived.
        tcp.readable().await.expect("a connection");
        let stage = Stage(Arc::new(AtomicU8::new(NEW)));
        let stream = TokioIo::new(MaybeHttpsStream::Http(TokioIo::new(tcp)));
        let mut stream = TrackedStream { stream, stage: stage.clone(), reset: None };
        stream.write_all(b"POST / HTTP/1.1\r\n\r\n").await.expect("the system takes it");
        assert_eq!(stage.get(), WRITTEN_FIRST);
        let read = stream.read(&mut [0; 9]).await;
        assert!(!matches!(read, Ok(1..)), "{read:?}");
        assert_eq!(stage.get(), REFUSED);
    }
}
