//! The HTTP client: a Tower service from the request of a line to the response of the provider.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use super::stop::Stop;
use super::target::Base;
use paceline::Timestamp;
use paceline::limiter::Limiter;

/// The in-flight state of a request, shared with the client through the request's extensions.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<AtomicBool>);

impl InFlight {
    /// Returns true while the request is in flight: from the time that it is passed to a connection
    /// (or connecting starts) until it has failed or its response has been judged.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, is_in_flight: bool) {
        self.0.store(is_in_flight, Ordering::Relaxed);
    }
}

/// A permit for one request in flight, kept in the response's extensions.
#[derive(Debug, Clone)]
pub(super) struct InFlightPermit {
    _guard: Arc<InFlightGuard>,
}

#[derive(Debug)]
struct InFlightGuard {
    in_flight: InFlight,
    _permit: OwnedSemaphorePermit,
}

impl InFlightPermit {
    fn new(in_flight: InFlight, permit: OwnedSemaphorePermit) -> Self {
        in_flight.set(true);
        Self { _guard: Arc::new(InFlightGuard { in_flight, _permit: permit }) }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.in_flight.set(false);
    }
}

/// An HTTP client with a bounded number of requests in flight.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    headers: HeaderMap,
    slots: Arc<Semaphore>,
    stop: Stop,
    /// Used as a clock.
    limiter: Limiter,
}

impl Client {
    pub(super) fn new(
        base: &Base,
        headers: HeaderMap,
        max_in_flight: usize,
        timeout: Duration,
        stop: Stop,
        limiter: Limiter,
    ) -> Result<Self, reqwest::Error> {
        let connect = timeout.min(CONNECT_TIMEOUT);
        let http = http_client(base).connect_timeout(connect).timeout(timeout).build()?;
        let slots = Arc::new(Semaphore::new(max_in_flight.min(Semaphore::MAX_PERMITS)));
        Ok(Self { http, headers, slots, stop, limiter })
    }

    fn request(&self, url: &http::Uri, body: Bytes) -> reqwest::RequestBuilder {
        let json = HeaderValue::from_static("application/json");
        let request = self.http.post(url.to_string()).header(CONTENT_TYPE, json).body(body);
        request.headers(self.headers.clone())
    }
}

impl Service<http::Request<Bytes>> for Client {
    type Response = http::Response<ReceivedBody>;
    type Error = reqwest::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), reqwest::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Bytes>) -> Self::Future {
        let (slots, stop) = (Arc::clone(&self.slots), self.stop.clone());
        let limiter = self.limiter.clone();
        let in_flight = request.extensions().get::<InFlight>().cloned().unwrap_or_default();
        let request = self.request(&request.uri().clone(), request.into_body());
        Box::pin(async move {
            let permit = slots.acquire_owned().await.expect("the semaphore is never closed");
            if stop.reason().is_some() {
                // The caller drops this future.
                return std::future::pending().await;
            }
            let slot = InFlightPermit::new(in_flight, permit);
            let (mut response, cut) = send_and_receive(request, &limiter).await?;
            response.extensions_mut().insert(slot);
            if let Some(Cut { last_read, .. }) = cut {
                response.extensions_mut().insert(last_read);
            }
            Ok(response.map(|bytes| received_body(bytes, cut.map(|cut| cut.error))))
        })
    }
}

/// A received body: its bytes, followed by the error that cut it off, if one did.
pub(super) type ReceivedBody =
    StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, reqwest::Error>>>>;

fn received_body(bytes: Bytes, error: Option<reqwest::Error>) -> ReceivedBody {
    let frames: Vec<_> = [Ok(Frame::data(bytes))].into_iter().chain(error.map(Err)).collect();
    StreamBody::new(stream::iter(frames))
}

/// The error that cut off the body of a success.
#[derive(Debug)]
struct Cut {
    error: reqwest::Error,
    last_read: LastRead,
}

/// The time at which the last bytes of a body were received that was cut off.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastRead(pub(super) Timestamp);

/// Sends a request and receives the response. A success that is cut off has what arrived of it, so that this is
/// charged; of other responses, the cut is an error.
async fn send_and_receive(
    request: reqwest::RequestBuilder,
    limiter: &Limiter,
) -> Result<(http::Response<Bytes>, Option<Cut>), reqwest::Error> {
    let (parts, mut body) = http::Response::from(request.send().await?).into_parts();
    let (mut received, mut last_read, mut cut) = (BytesMut::new(), LastRead(limiter.now()), None);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                received.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                last_read = LastRead(limiter.now());
            }
            Err(error) if parts.status.is_success() && !received.is_empty() => {
                cut = Some(Cut { error, last_read });
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok((http::Response::from_parts(parts, received.freeze()), cut))
}

/// Returns a builder for a client of this base URL, without redirects, and without a proxy for
/// loopback addresses.
pub(crate) fn http_client(base: &Base) -> reqwest::ClientBuilder {
    // Fails if a crypto provider is already installed, which is used then.
    drop(rustls::crypto::ring::default_provider().install_default());
    let http = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(DEFAULT_TIMEOUT)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none());
    if base.is_loopback() { http.no_proxy() } else { http }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of the official SDKs.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
