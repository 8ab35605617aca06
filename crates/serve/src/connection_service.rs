use std::any::Any;
use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version,
};
use axum::response::IntoResponse;
use axum::routing::RouterIntoService;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{CatchUnwind, Either};
use hyper::service::Service;
use pin_project::{pin_project, pinned_drop};
use tower::Service as _;

use super::access_log::AccessLogEntry;
use super::activity::{Activity, OpenRequest};
use super::app::App;
use super::auth::{Auth, FromProxy};
use super::budget::{BudgetExceeded, BudgetPermit};
use super::client_address::ClientAddress;
use super::host;
use super::problem::Problem;
use super::rate;
use super::request_body;
use super::request_id::MAX_LENGTH;
use super::response_body::ResponseBody;
use super::route::Route;
use paceline::Timestamp;
use paceline::middleware::BoxError;

/// The outermost service of a connection: it assigns request ids, bounds request bodies, turns panics
/// into responses, and writes the access log.
///
/// It is a single future without allocations: a few layers would take as long as a request to `/rate`.
#[derive(Debug, Clone)]
pub(super) struct ConnectionService {
    app: Arc<App>,
    routes: RouterIntoService<Body>,
    client: Auth,
    activity: Arc<Activity>,
    peer: ClientAddress,
    /// True if the peer is a configured reverse proxy.
    is_proxy: bool,
}

impl ConnectionService {
    pub(super) fn new(app: Arc<App>, routes: Router) -> Self {
        let (routes, client) = (routes.into_service(), rate::client(&app));
        let (peer, activity) = (ClientAddress::NONE, Arc::default());
        Self { app, routes, client, activity, peer, is_proxy: false }
    }

    /// Returns a service for another connection, from this address.
    pub(super) fn for_connection(&self, peer: Option<SocketAddr>) -> Self {
        let proxies = &self.app.serve.trusted_proxies;
        let is_proxy = peer.is_some_and(|peer| proxies.contains(&peer.ip().to_canonical()));
        let peer = peer.map_or(ClientAddress::NONE, |peer| ClientAddress::of(peer.ip()));
        Self { activity: Arc::default(), peer, is_proxy, ..self.clone() }
    }

    /// Returns the activity of the connection.
    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl<B> Service<Request<B>> for ConnectionService
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, mut request: Request<B>) -> ResponseFuture {
        let Self { app, routes, client, activity, peer, is_proxy } = self;
        let mut address = *peer;
        if *is_proxy {
            request.extensions_mut().insert(FromProxy);
            address = ClientAddress::forwarded(request.headers()).unwrap_or(address);
        }
        let permit = stream_permit(app, address, &request);
        let is_admitted = permit.is_ok();
        let info = RequestInfo {
            id: app.request_ids.of(request.headers()),
            correlation: correlation(request.headers()).cloned(),
            open: activity.start_request(request.version()),
            permit: permit.ok().flatten(),
            route: Route::of(request.uri().path()),
            method: request.method().clone(),
            started_at: app.limiter.now(),
        };
        let future = catch_unwind(AssertUnwindSafe(|| {
            let bounded = |body| request_body::bounded(body, &app.serve.bounds);
            if !is_admitted {
                return Either::Left(Either::Left(ready(Ok(too_many_streams()))));
            }
            if let Some(problem) = host::check_ambiguity(&request) {
                return Either::Left(Either::Left(ready(Ok(problem.into_response()))));
            }
            if !rate::is_acquire(&info.method, info.route) {
                request.extensions_mut().insert(address);
                return Either::Right(routes.clone().call(request.map(bounded)));
            }
            let response = rate::acquire(app, client, &request, info.started_at);
            Either::Left(match request.body().is_end_stream() {
                true => response,
                false => rate::after_body(response, bounded(request.into_body())),
            })
        }));
        let future = future
            .unwrap_or_else(|panic| Either::Left(Either::Left(ready(Ok(panic_response(&*panic))))));
        let future = AssertUnwindSafe(future).catch_unwind();
        ResponseFuture { future, info: Some(info), app: Arc::clone(app) }
    }
}

type InnerFuture = Either<rate::ResponseFuture, RouterFuture>;

type RouterFuture = <RouterIntoService<Body> as tower::Service<Request<Body>>>::Future;

/// The response future of [`ConnectionService`]. If it is dropped before completion, the client
/// disconnected.
#[pin_project(PinnedDrop)]
pub(super) struct ResponseFuture {
    #[pin]
    future: CatchUnwind<AssertUnwindSafe<InnerFuture>>,
    /// `None` after completion.
    info: Option<RequestInfo>,
    app: Arc<App>,
}

/// The parts of a request that the log and the response need.
struct RequestInfo {
    id: HeaderValue,
    correlation: Option<HeaderValue>,
    open: OpenRequest,
    /// The part of the budget of streams, over HTTP/2.
    permit: Option<BudgetPermit>,
    route: Route,
    method: Method,
    started_at: Timestamp,
}

impl Future for ResponseFuture {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = std::task::ready!(this.future.poll(cx));
        let mut response = match result {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(panic) => panic_response(&*panic),
        };
        let info = this.info.take().expect("a completed future is not polled again");
        info.log(this.app, response.status().as_u16());
        let headers = response.headers_mut();
        // An upstream's own id is kept, because the provider's support asks for it.
        headers.entry(REQUEST_ID).or_insert(info.id);
        if let Some(correlation) = info.correlation {
            headers.insert(CORRELATION_ID, correlation);
        }
        Poll::Ready(Ok(response.map(|body| ResponseBody::new(body, info.open, info.permit))))
    }
}

#[pinned_drop]
impl PinnedDrop for ResponseFuture {
    fn drop(self: Pin<&mut Self>) {
        let this = self.project();
        if let Some(info) = this.info.take() {
            info.log(this.app, CLIENT_GONE);
        }
    }
}

impl RequestInfo {
    fn log(&self, app: &App, status: u16) {
        app.request_counts.record(self.route, status);
        if !app.access_log.includes(status) {
            return;
        }
        AccessLogEntry {
            status,
            route: self.route,
            method: &self.method,
            request_id: &self.id,
            correlation_id: self.correlation.as_ref(),
            took: app.limiter.now() - self.started_at,
        }
        .log();
    }
}

/// Takes a request's part of the budget of streams: one for each [`HEAD`] bytes of its head, begun or whole. A request over
/// HTTP/1.1 has its connection to itself, and takes none.
fn stream_permit<B>(
    app: &App,
    client: ClientAddress,
    request: &Request<B>,
) -> Result<Option<BudgetPermit>, BudgetExceeded> {
    if request.version() != Version::HTTP_2 {
        return Ok(None);
    }
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD);
    let head = fields.sum::<usize>() + request.uri().path().len();
    app.streams.share(client).take(1 + head / HEAD).map(Some)
}

/// Returns the response to a request for which the client's part of the budget of streams has no room. It has no body,
/// which would wait until the client opens its window.
fn too_many_streams() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Returns the client's correlation id, if it is short enough to be echoed.
fn correlation(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(&CORRELATION_ID).filter(|id| id.len() <= MAX_LENGTH)
}

/// Returns the response to a request whose handler panicked.
fn panic_response(panic: &(dyn Any + Send)) -> Response<Body> {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = message.unwrap_or("(no message)"), "request handler panicked");
    Problem::internal().into_response()
}

/// The logged status of a request whose client disconnected, as in GoCC.
const CLIENT_GONE: u16 = 499;

/// The bytes of a head that count as one stream, and the memory of a field besides its name and value.
const HEAD: usize = 4 << 10;
const FIELD: usize = 128;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::acceptor::Acceptor;
    use crate::{Serve, Tokens, parse};

    async fn panicking() -> &'static str {
        panic!("on purpose")
    }

    #[tokio::test]
    async fn handler_panic_is_a_500_and_connection_survives() {
        let config = parse("serve: {listen: '127.0.0.1:0'}").unwrap();
        let limiter = config.builder().build().unwrap();
        let serve = Serve::of(&config).unwrap().clone();
        let listener = TcpListener::bind(serve.listen).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let app = Arc::new(App::new(config, serve, limiter, Tokens::default(), addr));
        let routes =
            Router::new().route("/panic", get(panicking)).route("/fine", get(async || "fine"));
        let (bounds, stopping) = (app.serve.bounds, app.stopping.clone());
        let service = ConnectionService::new(app, routes);
        let acceptor = Acceptor::new(listener, service, bounds, stopping.clone());
        let serving = tokio::spawn(acceptor.run(tokio::time::sleep(Duration::from_secs(9))));

        let mut stream = TcpStream::connect(addr).await.unwrap();
        let panic = b"GET /panic HTTP/1.1\r\nhost: a\r\nx-request-id: r\r\n\r\n";
        let fine = b"GET /fine HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(&[&panic[..], &fine[..]].concat()).await.unwrap();
        let mut responses = String::new();
        stream.read_to_string(&mut responses).await.unwrap();
        let at = |text| responses.find(text).unwrap_or_else(|| panic!("{text} in {responses}"));
        assert!(at("HTTP/1.1 500") < at("HTTP/1.1 200") && at("fine") > 0);
        assert!(at("x-request-id: r\r\n") < at("HTTP/1.1 200"));
        stopping.cancel();
        serving.await.unwrap();
    }
}
