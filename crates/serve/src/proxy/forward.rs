use std::error::Error;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT_ENCODING, ALLOW, RETRY_AFTER};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};

use super::Proxy;
use super::client::{RequestBody, TimedOut};
use super::format::Format;
use super::headers;
use super::room::{NoRoom, Taken, Taking};
use super::trust::distrust;
use super::upstream::Upstream;
use crate::causes::is_of_length;
use crate::config::UnreadRequests;
use crate::problem::Problem;
use tollgate::limiter::AcquireError;
use tollgate::middleware::respond::refusal;
use tollgate::middleware::{BoxError, BufferedBody, Classified, RateLimitError};
use tollgate::provider::UnreadableRequest;
use tollgate::{ErrorChain, causes};

/// Forwards a request to the upstream that the first segment of its path names.
pub(super) async fn forward(
    State(proxy): State<Arc<Proxy>>,
    request: Request<Body>,
) -> Response<Body> {
    let (name, path) = split(request.uri().path());
    let Some(upstream) = proxy.upstreams.iter().find(|upstream| upstream.name == name) else {
        return Format::OpenAi.problem(proxy.unknown());
    };
    let target = match target(upstream, path, &request) {
        Ok(target) => target,
        Err(problem) => return with_choice(upstream.format.problem(problem)),
    };
    let is_browser = headers::are_of_browser(request.headers());
    let mut response = match proxy.read(request, target).await {
        Ok(request) => answer(&proxy, upstream, request).await,
        Err(problem) => upstream.format.problem(problem),
    };
    if is_browser {
        headers::sandbox(response.headers_mut());
    }
    response
}

/// Where a request goes that may pass, by its head.
fn target(upstream: &Upstream, path: &str, request: &Request<Body>) -> Result<Uri, Problem> {
    if [Method::CONNECT, Method::TRACE].contains(request.method()) {
        return Err(no_method());
    }
    let target = upstream.base.join(path, request.uri().query())?;
    if headers::asks_for_websocket(request.headers()) {
        return Err(no_websocket());
    }
    Ok(target)
}

/// Says what would be taken instead (RFC 9110, 15.5.6 and 15.5.16).
fn with_choice(mut response: Response<Body>) -> Response<Body> {
    let (name, choice) = match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => (ALLOW, METHODS),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (ACCEPT_ENCODING, "identity"),
        _ => return response,
    };
    response.headers_mut().insert(name, HeaderValue::from_static(choice));
    response
}

impl Proxy {
    /// The request to its target, with its body in memory.
    async fn read(
        &self,
        request: Request<Body>,
        target: Uri,
    ) -> Result<Request<RequestBody>, Problem> {
        let (parts, body) = request.into_parts();
        let most = self.app.serve.bounds.body;
        let taken = Taken::none(&self.room);
        let body = Body::new(Taking::new(body, &taken));
        let body = BufferedBody::read(body, &parts.headers, most).await.held_with(taken);
        match body.error() {
            Some(error) => return Err(unread(error, most)),
            None if !body.is_whole() => return Err(too_large(most)),
            None => {}
        }
        // Nothing that the server has put into its extensions goes on.
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut()) = (parts.method, target);
        *request.headers_mut() = parts.headers;
        Ok(request)
    }

    /// What a request is charged to, if it is.
    fn classify(
        &self,
        upstream: &Upstream,
        request: &Request<RequestBody>,
    ) -> Result<Option<Classified>, Problem> {
        let Some((classified, unreadable)) = upstream.classify(request) else { return Ok(None) };
        match unreadable.filter(|_| self.app.serve.unread == UnreadRequests::Refuse) {
            Some(unreadable) => Err(not_certain(&unreadable)),
            None => self.bound_keys(&classified).map(|()| Some(classified)),
        }
    }

    /// Keys are kept: how long they may be is bounded.
    fn bound_keys(&self, classified: &Classified) -> Result<(), Problem> {
        let most = self.app.serve.bounds.key;
        match classified.keys().iter().all(|key| key.as_str().len() <= most) {
            true => Ok(()),
            false => Err(long_key(most)),
        }
    }

    fn unknown(&self) -> Problem {
        let names: Vec<&str> = self.upstreams.iter().map(|upstream| &*upstream.name).collect();
        let detail = match names.is_empty() {
            true => "no upstream is configured; give `serve.upstreams`".to_owned(),
            false => format!("no such upstream; there are: {}", names.join(", ")),
        };
        Problem::new(StatusCode::NOT_FOUND, "unknown_upstream", detail)
    }
}

async fn answer(
    proxy: &Proxy,
    upstream: &Upstream,
    mut request: Request<RequestBody>,
) -> Response<Body> {
    let classified = match proxy.classify(upstream, &request) {
        Ok(classified) => classified,
        Err(problem) => return with_choice(upstream.format.problem(problem)),
    };
    let Ok(_waiting) = proxy.app.waiting.try_acquire() else {
        return upstream.format.problem(busy());
    };
    headers::to_upstream(request.headers_mut(), upstream.base.may_be_http2());
    if classified.is_some() {
        headers::uncompressed(request.headers_mut());
    }
    let (sent, tries) = upstream.send(request, classified.clone()).await;
    let mut response = match sent {
        Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            upstream.format.problem(garbage(&upstream.name))
        }
        Ok(response) => passed(response),
        Err(RateLimitError::Limited(error)) => {
            refused(proxy, upstream, classified.as_ref(), &error)
        }
        Err(RateLimitError::Inner(error)) => {
            upstream.format.problem(failed(&upstream.name, &error))
        }
        Err(error) => upstream.format.problem(failed(&upstream.name, &error.into())),
    };
    if tries > 1 && !response.status().is_success() {
        headers::tried_enough(response.headers_mut());
    }
    response
}

/// An upstream's answer, as the client's.
fn passed(mut response: Response<Body>) -> Response<Body> {
    *response.version_mut() = Version::HTTP_11;
    headers::to_client(response.headers_mut());
    response
}

fn refused(
    proxy: &Proxy,
    upstream: &Upstream,
    classified: Option<&Classified>,
    error: &AcquireError,
) -> Response<Body> {
    let limiter = &proxy.app.limiter;
    let classified = classified.expect("only what is classified is limited");
    let mut response = refusal(limiter, classified.keys(), classified.cost(), error);
    // Another server takes over, or what counts now will say.
    if matches!(error, AcquireError::Closed | AcquireError::Removed { .. }) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    upstream.format.refusal(response)
}

/// What became of a request that was sent, or could not be.
fn failed(name: &str, error: &BoxError) -> Problem {
    tracing::warn!(upstream = name, error = %ErrorChain(&**error), "an upstream has failed");
    let client = error.downcast_ref::<hyper_util::client::legacy::Error>();
    let is_connect = client.is_some_and(|error| error.is_connect());
    // The system's resolver doesn't say that it could open no file.
    let is_full = || std::fs::File::open("/dev/null").is_err_and(|error| is_out_of_files(&error));
    if causes(&**error).any(is_out_of_files) || (is_connect && is_full()) {
        return no_files();
    }
    if error.is::<TimedOut>() {
        let detail = format!("the upstream `{name}` has not answered in time");
        return Problem::new(StatusCode::GATEWAY_TIMEOUT, "upstream_timeout", detail);
    }
    if let Some(problem) = distrust(name, &**error) {
        return problem;
    }
    if is_connect {
        let detail = format!("the upstream `{name}` can't be connected to");
        return Problem::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", detail);
    }
    garbage(name)
}

fn garbage(name: &str) -> Problem {
    let detail = format!("the upstream `{name}` closed the connection or sent invalid HTTP");
    Problem::new(StatusCode::BAD_GATEWAY, "upstream_failed", detail)
}

/// Whether this process, or this machine, may open no more files: the upstream has nothing to do with
/// it.
fn is_out_of_files(cause: &(dyn Error + 'static)) -> bool {
    let error = cause.downcast_ref::<io::Error>();
    cfg!(unix)
        && error.and_then(io::Error::raw_os_error).is_some_and(|code| OUT_OF_FILES.contains(&code))
}

fn no_files() -> Problem {
    let detail = "this server may open no more files, so that it can't connect to the upstream; raise \
                  its limit (ulimit -n, LimitNOFILE=), or lower `serve.bounds.connections`";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_open_files", detail).retry_after(1)
}

fn busy() -> Problem {
    let detail = "the wait queue is full (`serve.bounds.waiting`)";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).retry_after(1)
}

fn no_room() -> Problem {
    let detail = "as many bytes of requests are held as may be (`serve.bounds.buffered`)";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).retry_after(1)
}

fn no_method() -> Problem {
    let detail = "the proxy passes neither CONNECT nor TRACE";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_method", detail)
}

fn not_certain(unreadable: &UnreadableRequest) -> Problem {
    let (status, code) = match unreadable.part() {
        "content-encoding" => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body"),
        _ => (StatusCode::BAD_REQUEST, "unreadable_request"),
    };
    let detail = format!(
        "what the request is charged to can't be read for certain: {unreadable} (`serve.unread: allow` \
         lets it pass)"
    );
    Problem::new(status, code, detail)
}

fn no_websocket() -> Problem {
    let detail = "the proxy passes no WebSocket: nothing in it could be counted";
    Problem::new(StatusCode::NOT_IMPLEMENTED, "no_websocket", detail)
}

/// Why a body could not be read: what the server bounds for all routes, or its client.
fn unread(error: &(dyn Error + 'static), most: usize) -> Problem {
    let is_late = |cause: &(dyn Error + 'static)| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
    };
    if is_of_length(error) {
        return too_large(most);
    }
    if causes(error).any(|cause| cause.is::<NoRoom>()) {
        return no_room();
    }
    if causes(error).any(is_late) {
        let detail = "the body has not come in time (`serve.bounds.body_timeout`)";
        return Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail);
    }
    Problem::new(StatusCode::BAD_REQUEST, "broken_body", "the body has broken off")
}

fn too_large(most: usize) -> Problem {
    let detail = format!("the body has more than {most} bytes (`serve.bounds.body`)");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

fn long_key(most: usize) -> Problem {
    let detail = format!("the model, or another key, has more than {most} bytes");
    Problem::new(StatusCode::BAD_REQUEST, "key_too_long", detail)
}

/// The name of an upstream, and the path below it as it was written.
pub(super) fn split(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_at(path.find('/').unwrap_or(path.len()))
}

/// ENFILE and EMFILE, the same on every Unix.
const OUT_OF_FILES: [i32; 2] = [23, 24];

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
