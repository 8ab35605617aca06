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
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::RouterIntoService;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{CatchUnwind, Either};
use hyper::service::Service;
use pin_project::{pin_project, pinned_drop};
use tower::Service as _;

use super::activity::{Activity, Open};
use super::answer_body::AnswerBody;
use super::app::App;
use super::auth::{Auth, FromProxy};
use super::host;
use super::logged::Answered;
use super::problem::Problem;
use super::rate;
use super::request_body;
use super::request_id::LONGEST;
use super::route::Route;
use tollgate::Timestamp;
use tollgate::middleware::BoxError;

/// What stands before all routes, one for each connection: it gives requests their ids, bounds their
/// bodies, turns a panic into an answer, and logs what was answered.
///
/// It is written as one future, without an allocation, since a request for a rate takes hardly longer
/// than a few layers would.
#[derive(Debug, Clone)]
pub(super) struct Front {
    app: Arc<App>,
    routes: RouterIntoService<Body>,
    client: Auth,
    activity: Arc<Activity>,
    /// Whether the connection is that of a configured proxy.
    is_proxy: bool,
}

impl Front {
    pub(super) fn new(app: Arc<App>, routes: Router) -> Self {
        let (routes, client) = (routes.into_service(), rate::client(&app));
        Self { app, routes, client, activity: Arc::default(), is_proxy: false }
    }

    /// The same for another connection, from this address.
    pub(super) fn for_connection(&self, peer: Option<SocketAddr>) -> Self {
        let proxies = &self.app.serve.trusted_proxies;
        let is_proxy = peer.is_some_and(|peer| proxies.contains(&peer.ip().to_canonical()));
        Self { activity: Arc::default(), is_proxy, ..self.clone() }
    }

    /// What goes on by this connection.
    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl<B> Service<Request<B>> for Front
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, mut request: Request<B>) -> Answering {
        let Self { app, routes, client, activity, is_proxy } = self;
        if *is_proxy {
            request.extensions_mut().insert(FromProxy);
        }
        let head = Head {
            id: app.ids.of(request.headers()),
            correlation: correlation(request.headers()).cloned(),
            open: activity.opened(request.version()),
            route: Route::of(request.uri().path()),
            method: request.method().clone(),
            began: app.limiter.now(),
        };
        let answer = catch_unwind(AssertUnwindSafe(|| {
            let bounded = |body| request_body::bounded(body, &app.serve.bounds);
            if let Some(problem) = host::ambiguous(&request) {
                return Either::Left(Either::Left(ready(Ok(problem.into_response()))));
            }
            if !rate::is_asked(&head.method, head.route) {
                return Either::Right(routes.clone().call(request.map(bounded)));
            }
            let answer = rate::ask(app, client, &request, head.began);
            Either::Left(match request.body().is_end_stream() {
                true => answer,
                false => rate::after_body(answer, bounded(request.into_body())),
            })
        }));
        let answer =
            answer.unwrap_or_else(|panic| Either::Left(Either::Left(ready(Ok(failed(&*panic))))));
        let answer = AssertUnwindSafe(answer).catch_unwind();
        Answering { answer, head: Some(head), app: Arc::clone(app) }
    }
}

type Answer = Either<rate::Answer, Routed>;

type Routed = <RouterIntoService<Body> as tower::Service<Request<Body>>>::Future;

/// An answer on its way; dropped before it is there, its client has gone away.
#[pin_project(PinnedDrop)]
pub(super) struct Answering {
    #[pin]
    answer: CatchUnwind<AssertUnwindSafe<Answer>>,
    /// Until it is answered.
    head: Option<Head>,
    app: Arc<App>,
}

/// What is known of a request without its key.
struct Head {
    id: HeaderValue,
    correlation: Option<HeaderValue>,
    open: Open,
    route: Route,
    method: Method,
    began: Timestamp,
}

impl Future for Answering {
    type Output = Result<Response<AnswerBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = std::task::ready!(this.answer.poll(cx));
        let mut response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(panic) => failed(&*panic),
        };
        let head = this.head.take().expect("an answer is polled no more once it is there");
        head.tell(this.app, response.status().as_u16());
        let headers = response.headers_mut();
        // An upstream's own is what its support asks for.
        headers.entry(REQUEST_ID).or_insert(head.id);
        if let Some(correlation) = head.correlation {
            headers.insert(CORRELATION_ID, correlation);
        }
        Poll::Ready(Ok(response.map(|body| AnswerBody::new(body, head.open))))
    }
}

#[pinned_drop]
impl PinnedDrop for Answering {
    fn drop(self: Pin<&mut Self>) {
        let this = self.project();
        if let Some(head) = this.head.take() {
            head.tell(this.app, CLIENT_GONE);
        }
    }
}

impl Head {
    fn tell(&self, app: &App, status: u16) {
        app.requests.answered(self.route, status);
        if !app.logs.tells(status) {
            return;
        }
        Answered {
            status,
            route: self.route,
            method: &self.method,
            request_id: &self.id,
            correlation_id: self.correlation.as_ref(),
            took: app.limiter.now() - self.began,
        }
        .tell();
    }
}

/// The id by which a client finds its request again; one that is too long isn't told again.
fn correlation(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(&CORRELATION_ID).filter(|id| id.len() <= LONGEST)
}

/// The answer where a route has panicked: that is a fault of ours, and of this request alone.
fn failed(panic: &(dyn Any + Send)) -> Response<Body> {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = said.unwrap_or("no text"), "a request has panicked");
    let detail = "this is a fault of the server; its log says more";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).into_response()
}

/// As GoCC logs it; nobody is there to see it.
const CLIENT_GONE: u16 = 499;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::accepting::Accepting;
    use crate::{Serve, Tokens, parse};

    async fn panicking() -> &'static str {
        panic!("on purpose")
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_and_no_more_than_that() {
        let config = parse("serve: {listen: '127.0.0.1:0'}").unwrap();
        let limiter = config.builder().build().unwrap();
        let serve = Serve::of(&config).unwrap().clone();
        let listener = TcpListener::bind(serve.listen).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let app = Arc::new(App::new(config, serve, limiter, Tokens::default(), addr));
        let routes =
            Router::new().route("/panic", get(panicking)).route("/fine", get(async || "fine"));
        let (bounds, stopping) = (app.serve.bounds, app.stopping.clone());
        let front = Front::new(app, routes);
        let accepting = Accepting::new(listener, front, bounds, stopping.clone());
        let serving = tokio::spawn(accepting.run(tokio::time::sleep(Duration::from_secs(9))));

        let mut stream = TcpStream::connect(addr).await.unwrap();
        let panic = b"GET /panic HTTP/1.1\r\nhost: a\r\nx-request-id: r\r\n\r\n";
        let fine = b"GET /fine HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(&[&panic[..], &fine[..]].concat()).await.unwrap();
        let mut answers = String::new();
        stream.read_to_string(&mut answers).await.unwrap();
        let at = |text| answers.find(text).unwrap_or_else(|| panic!("{text} in {answers}"));
        assert!(at("HTTP/1.1 500") < at("HTTP/1.1 200") && at("fine") > 0);
        assert!(at("x-request-id: r\r\n") < at("HTTP/1.1 200"));
        stopping.cancel();
        serving.await.unwrap();
    }
}
