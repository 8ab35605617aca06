use std::cell::Cell;
use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Builder};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_service::Service;

use super::tls::tls;
use super::tracked_stream::{Connector, is_resendable};
use crate::config::Bounds;
use paceline::middleware::{BoxError, BufferedBody, Unsent};

/// A complete request body.
pub(super) type RequestBody = BufferedBody<Body>;

/// The HTTP client for upstreams, over HTTP/1.1 and, if TLS negotiates it, HTTP/2.
///
/// It follows no redirects and uses no proxies. The timeout ends with the response headers; the body
/// may take as long as the client of the proxy waits for it.
#[derive(Clone)]
pub(super) struct Client {
    http: legacy::Client<Connector, RequestBody>,
    timeout: Duration,
}

impl Client {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let timeout = bounds.upstream_timeout;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT.min(timeout)));
        tcp.set_keepalive(Some(KEEPALIVE));
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls());
        let connector = tls.https_or_http().enable_all_versions().wrap_connector(tcp);
        let mut builder = builder();
        builder.pool_idle_timeout(bounds.upstream_idle);
        Self { http: builder.build(Connector(connector)), timeout }
    }
}

impl Service<Request<RequestBody>> for Client {
    type Response = Response<Incoming>;
    /// A [`legacy::Error`], a [`TimedOut`], or an [`Unsent`] if the upstream cannot have read the
    /// request.
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        count_attempt();
        let (method, timeout) = (request.method().clone(), self.timeout);
        let sent = self.http.request(request);
        Box::pin(async move {
            let (mut sent, early) = (pin!(sent), EARLY.min(timeout));
            let first = tokio::time::timeout(early, sent.as_mut()).await;
            let is_early = first.is_ok();
            let result = match first {
                Ok(result) => Ok(result),
                Err(_) => tokio::time::timeout(timeout - early, sent).await,
            };
            result.map_err(|_| TimedOut(timeout))?.map_err(|error| {
                match is_resendable(&error, &method, is_early) {
                    true => Unsent::new(error).into(),
                    false => error.into(),
                }
            })
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Runs a request, and returns its result with the number of attempts to send it.
pub(super) async fn count_attempts<T>(sending: impl Future<Output = T>) -> (T, u32) {
    let counted = async { (sending.await, ATTEMPTS.with(Cell::get)) };
    ATTEMPTS.scope(Cell::new(0), counted).await
}

fn count_attempt() {
    // Outside of `count_attempts` there is no counter.
    let _ = ATTEMPTS.try_with(|attempts| attempts.set(attempts.get() + 1));
}

tokio::task_local! {
    /// The number of attempts of the current request.
    static ATTEMPTS: Cell<u32>;
}

/// The error for an upstream that sent no response headers in time.
#[derive(Debug)]
pub(super) struct TimedOut(Duration);

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no response headers within {:?}", self.0)
    }
}

impl std::error::Error for TimedOut {}

fn builder() -> Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(KEEPALIVE);
    builder
}

/// The time after which a reset isn't caused by the end of an idle connection.
const EARLY: Duration = Duration::from_secs(1);

const CONNECT: Duration = Duration::from_secs(10);

const KEEPALIVE: Duration = Duration::from_secs(30);

/// The unread bytes of a response that HTTP/2 buffers per stream. The window of the connection holds
/// about 8,192 full streams, so that slow clients do not block others.
const STREAM_WINDOW: u32 = 256 * 1_024;
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
