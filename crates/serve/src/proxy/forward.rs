use std::error::Error;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER,
    TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{
    Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
};
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, BodyStream, StreamBody};

use super::client::{RequestBody, TimedOut};
use super::encoded_body::EncodedBody;
use super::headers;
use super::key_sources::check_credentials;
use super::path::{split, unknown_upstream};
use super::state::Proxy;
use super::tls::describe_tls_error;
use super::upstream::Upstream;
use crate::budget::{BudgetExceeded, BudgetPermit};
use crate::budgeted_body::BudgetedBody;
use crate::client_address::ClientAddress;
use crate::config::UnreadRequests;
use crate::content_encoding::DecodeError;
use crate::length_limit::is_length_limit;
use crate::priority;
use crate::problem::Problem;
use paceline::limiter::{AcquireError, Priority};
use paceline::middleware::respond::refusal;
use paceline::middleware::{
    Ask, BoxError, BufferedBody, Classified, RateLimitError, WithoutUsageChunk,
};
use paceline::provider::UnreadableRequest;
use paceline::{ErrorChain, causes};

/// Forwards a request to the upstream named by the first segment of its path.
pub(super) async fn forward(
    State(proxy): State<Arc<Proxy>>,
    request: Request<Body>,
) -> Response<Body> {
    let (name, path) = split(request.uri().path());
    let Some(upstream) = proxy.upstreams.iter().find(|upstream| upstream.name == name) else {
        return unknown_upstream(&proxy.app, request.uri());
    };
    let target = match target(upstream, path, &request) {
        Ok(target) => target,
        Err(problem) => return with_alternatives(upstream.format.problem(problem)),
    };
    let is_browser = headers::are_from_browser(request.headers());
    let mut response = match proxy.read(request, target, upstream).await {
        Ok(read) => send(&proxy, upstream, read).await,
        Err(problem) => upstream.format.problem(problem),
    };
    if is_browser {
        headers::sandbox(response.headers_mut());
    }
    response
}

/// Returns the target of a request, if its head can be forwarded.
fn target(upstream: &Upstream, path: &str, request: &Request<Body>) -> Result<Uri, Problem> {
    if [Method::CONNECT, Method::TRACE].contains(request.method()) {
        return Err(method_not_allowed());
    }
    let target = upstream.base.join(path, request.uri().query())?;
    if headers::is_websocket(request.headers()) {
        return Err(websocket_unsupported());
    }
    check_credentials(request.headers())?;
    Ok(target)
}

/// Adds a header that lists the supported alternatives (RFC 9110, 15.5.6, 15.5.16 and 15.5.22).
fn with_alternatives(mut response: Response<Body>) -> Response<Body> {
    let (name, alternatives) = match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => (ALLOW, ALLOWED_METHODS),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            (ACCEPT_ENCODING, "gzip, deflate, br, zstd, identity")
        }
        StatusCode::UPGRADE_REQUIRED => (UPGRADE, "HTTP/1.1"),
        _ => return response,
    };
    response.headers_mut().insert(name, HeaderValue::from_static(alternatives));
    response
}

/// A request whose body is in memory.
struct ReadRequest {
    /// With the decompressed body.
    request: Request<RequestBody>,
    /// The body to send instead.
    encoded: Option<EncodedBody>,
    /// True if the proxy asks for the usage of a stream, which its client didn't.
    requests_usage: bool,
}

impl Proxy {
    /// Reads a request body into memory, sets the target, and requests the usage of a stream that would have
    /// none.
    async fn read(
        &self,
        request: Request<Body>,
        target: Uri,
        upstream: &Upstream,
    ) -> Result<ReadRequest, Problem> {
        let (parts, body) = request.into_parts();
        let max_length = self.app.serve.bounds.body;
        let client = ClientAddress::of_request(&parts.extensions);
        let permit = Arc::new(BudgetPermit::new(&self.app.bodies.share(client)));
        let body = Body::new(BudgetedBody::new(body, &permit));
        let body = BufferedBody::read(body, &parts.headers, max_length).await;
        match body.error() {
            Some(error) => return Err(body_error(error, max_length)),
            None if !body.is_whole() => return Err(too_large(max_length)),
            None => {}
        }
        // A new request has none of the server's extensions.
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut()) = (parts.method, target);
        *request.headers_mut() = parts.headers;
        let encoded = match EncodedBody::take(&mut request, &permit, max_length) {
            Ok(encoded) => encoded,
            Err(_) if self.app.serve.unread == UnreadRequests::Allow => None,
            Err(error) => return Err(undecodable(error)),
        };
        let requests_usage = upstream.request_usage(&mut request);
        // The changed body is sent as it is.
        let encoded =
            encoded.filter(|_| !requests_usage).map(|body| body.held_with(permit.clone()));
        let request = request.map(|body| body.held_with(permit));
        Ok(ReadRequest { request, encoded, requests_usage })
    }

    /// Returns the keys and the cost of a request, if it is charged.
    fn classify(
        &self,
        upstream: &Upstream,
        request: &Request<RequestBody>,
    ) -> Result<Option<Classified>, Problem> {
        let Some((classified, unreadable)) = upstream.classify(request)? else { return Ok(None) };
        match unreadable.filter(|_| self.app.serve.unread == UnreadRequests::Refuse) {
            Some(unreadable) => Err(unreadable_request(&unreadable)),
            None => self.check_key_lengths(&classified).map(|()| Some(classified)),
        }
    }

    /// Checks the length of the keys, which are kept in memory.
    fn check_key_lengths(&self, classified: &Classified) -> Result<(), Problem> {
        let max_length = self.app.serve.bounds.key;
        match classified.keys().iter().all(|key| key.as_str().len() <= max_length) {
            true => Ok(()),
            false => Err(key_too_long(max_length)),
        }
    }
}

async fn send(proxy: &Proxy, upstream: &Upstream, read: ReadRequest) -> Response<Body> {
    let ReadRequest { mut request, encoded, requests_usage } = read;
    let header = proxy.app.serve.priority_header.as_ref();
    let priority = match priority::take(request.headers_mut(), header) {
        Ok(priority) => priority,
        Err(problem) => return upstream.format.problem(problem),
    };
    let classified = match proxy.classify(upstream, &request) {
        Ok(classified) => classified.map(|classified| with_priority(classified, priority)),
        Err(problem) => return with_alternatives(upstream.format.problem(problem)),
    };
    if let Some(encoded) = encoded {
        encoded.restore(&mut request);
    }
    let Ok(_waiting) = proxy.app.waiting.try_acquire() else {
        return upstream.format.problem(queue_full());
    };
    headers::to_upstream(request.headers_mut(), upstream.base.may_be_http2());
    upstream.remove_scope_headers(request.headers_mut());
    if classified.is_some() {
        headers::request_identity(request.headers_mut());
    }
    let (sent, attempts) = upstream.send(request, classified.clone()).await;
    let sent = match sent {
        Ok(response) => with_first_frame(response).await.map_err(RateLimitError::Inner),
        Err(error) => Err(error),
    };
    let mut response = match sent {
        Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            upstream.format.problem(invalid_response(&upstream.name))
        }
        Ok(response) if requests_usage => without_usage_chunk(to_client_response(response)),
        Ok(response) => to_client_response(response),
        Err(RateLimitError::Limited(error)) => {
            refusal_response(proxy, upstream, classified.as_ref(), &error)
        }
        Err(RateLimitError::Inner(error)) => {
            upstream.format.problem(upstream_error(&upstream.name, &error))
        }
        Err(error) => upstream.format.problem(upstream_error(&upstream.name, &error.into())),
    };
    if attempts > 1 && !response.status().is_success() {
        headers::prevent_retry(response.headers_mut());
    }
    response
}

/// Waits for the first frame of a chunked body that is no stream of events. If its framing is invalid, the
/// client gets an answer that says so; otherwise the server closes its connection, even before the head is
/// sent.
async fn with_first_frame(response: Response<Body>) -> Result<Response<Body>, BoxError> {
    if !response.headers().contains_key(TRANSFER_ENCODING) || is_event_stream(response.headers()) {
        return Ok(response);
    }
    let (parts, mut body) = response.into_parts();
    let first = body.frame().await.transpose()?;
    let frames = stream::iter(first.map(Ok)).chain(BodyStream::new(body));
    Ok(Response::from_parts(parts, Body::new(StreamBody::new(frames))))
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    kind.to_ascii_lowercase().starts_with(b"text/event-stream")
}

fn with_priority(classified: Classified, priority: Option<Priority>) -> Classified {
    let Some(priority) = priority else { return classified };
    let mut extensions = Extensions::new();
    extensions.insert(Ask::new().priority(priority));
    classified.with_extensions(&extensions)
}

/// Turns the response of an upstream into that of the proxy.
fn to_client_response(mut response: Response<Body>) -> Response<Body> {
    *response.version_mut() = Version::HTTP_11;
    headers::to_client(response.headers_mut());
    response
}

/// Removes the usage that only the proxy has requested from a stream.
fn without_usage_chunk(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    if !is_event_stream(headers) || headers.contains_key(CONTENT_ENCODING) {
        return response;
    }
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|body| Body::new(WithoutUsageChunk::new(body)))
}

fn refusal_response(
    proxy: &Proxy,
    upstream: &Upstream,
    classified: Option<&Classified>,
    error: &AcquireError,
) -> Response<Body> {
    let limiter = &proxy.app.limiter;
    let classified = classified.expect("only classified requests are limited");
    let mut response = refusal(limiter, classified.keys(), classified.cost(), error);
    // A retry may reach another server, or find another quota.
    if matches!(error, AcquireError::Closed | AcquireError::Removed { .. }) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    upstream.format.refusal(response, error)
}

/// Returns the error for a request that failed or could not be sent.
fn upstream_error(name: &str, error: &BoxError) -> Problem {
    tracing::warn!(
        upstream = name,
        error = %ErrorChain(&**error),
        "upstream request failed"
    );
    let client = error.downcast_ref::<hyper_util::client::legacy::Error>();
    let is_connect = client.is_some_and(|error| error.is_connect());
    // The system's resolver does not report that it could not open a file.
    let is_full = || std::fs::File::open("/dev/null").is_err_and(|error| is_out_of_files(&error));
    if causes(&**error).any(is_out_of_files) || (is_connect && is_full()) {
        return too_many_open_files();
    }
    if error.is::<TimedOut>() {
        let detail = format!(
            "the upstream `{name}` did not respond in time (`serve.bounds.upstream_timeout`)"
        );
        return Problem::new(StatusCode::GATEWAY_TIMEOUT, "upstream_timeout", detail);
    }
    if let Some(problem) = describe_tls_error(name, &**error) {
        return problem;
    }
    if is_connect {
        let detail = format!("cannot connect to the upstream `{name}`");
        return Problem::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", detail);
    }
    invalid_response(name)
}

fn invalid_response(name: &str) -> Problem {
    let detail = format!("the upstream `{name}` closed the connection or sent invalid HTTP");
    Problem::new(StatusCode::BAD_GATEWAY, "upstream_failed", detail)
}

/// Returns true if the process or the system has too many open files, which is not the upstream's
/// fault.
fn is_out_of_files(cause: &(dyn Error + 'static)) -> bool {
    let error = cause.downcast_ref::<io::Error>();
    cfg!(unix)
        && error.and_then(io::Error::raw_os_error).is_some_and(|code| OUT_OF_FILES.contains(&code))
}

fn too_many_open_files() -> Problem {
    let detail = "cannot connect to the upstream: the server has too many open files; raise the limit \
                  (ulimit -n, LimitNOFILE=), or lower `serve.bounds.connections`";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_open_files", detail).retry_after(1)
}

fn queue_full() -> Problem {
    let detail = "the wait queue is full (`serve.bounds.waiting`)";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).retry_after(1)
}

fn budget_exceeded() -> Problem {
    let detail = "the memory budget for request bodies is used up (`serve.bounds.buffered`)";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).retry_after(1)
}

fn method_not_allowed() -> Problem {
    let detail = "the proxy does not support CONNECT and TRACE";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_method", detail)
}

fn unreadable_request(unreadable: &UnreadableRequest) -> Problem {
    let (status, code) = match unreadable.part() {
        "content-encoding" => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body"),
        _ => (StatusCode::BAD_REQUEST, "unreadable_request"),
    };
    let detail = format!(
        "cannot determine what to charge: {unreadable}; `serve.unread: allow` forwards such requests"
    );
    Problem::new(status, code, detail)
}

fn undecodable(error: DecodeError) -> Problem {
    match error {
        DecodeError::Invalid(error) => {
            let detail = format!(
                "cannot decompress the body by its `content-encoding`: {error}; send it uncompressed"
            );
            Problem::new(StatusCode::BAD_REQUEST, "broken_body", detail)
        }
        DecodeError::TooLong(most) => {
            let detail = format!(
                "the decompressed body exceeds {most} bytes (`serve.bounds.body`, and 100 times the \
                 compressed body)"
            );
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
        }
        DecodeError::NoMemory => budget_exceeded(),
    }
}

fn websocket_unsupported() -> Problem {
    let detail = "the proxy does not support WebSocket, because its usage cannot be measured; send the request by \
                  HTTP, which clients do after this status";
    Problem::new(StatusCode::UPGRADE_REQUIRED, "no_websocket", detail)
}

/// Returns the error for a request body that could not be read.
fn body_error(error: &(dyn Error + 'static), max_length: usize) -> Problem {
    let is_timeout = |cause: &(dyn Error + 'static)| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
    };
    if is_length_limit(error) {
        return too_large(max_length);
    }
    if causes(error).any(|cause| cause.is::<BudgetExceeded>()) {
        return budget_exceeded();
    }
    if causes(error).any(is_timeout) {
        let detail = "timed out reading the request body (`serve.bounds.body_timeout`)";
        return Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail);
    }
    Problem::new(StatusCode::BAD_REQUEST, "broken_body", "the request body is incomplete")
}

fn too_large(max_length: usize) -> Problem {
    let detail = format!("the body exceeds {max_length} bytes (`serve.bounds.body`)");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

fn key_too_long(max_length: usize) -> Problem {
    let detail =
        format!("the model or another key exceeds {max_length} bytes (`serve.bounds.key`)");
    Problem::new(StatusCode::BAD_REQUEST, "key_too_long", detail)
}

/// ENFILE and EMFILE, the same on every Unix.
const OUT_OF_FILES: [i32; 2] = [23, 24];

const ALLOWED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
