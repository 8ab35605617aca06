use std::future::ready;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use futures_util::FutureExt;
use futures_util::future::Either;

use super::grants::{self, GrantLimitReached};
use super::limit_table::Limits;
use super::path_segment::EMPTY_KEY;
use super::rate_error::RateError;
use super::rate_key::RateKey;
use super::rate_query::RateQuery;
use super::response_format::ResponseFormat;
use super::response_future::ResponseFuture;
use crate::app::App;
use crate::priority;
use paceline::Timestamp;
use paceline::limiter::{Acquire, AcquireError, Permit};

/// Handles `POST` and `GET /rate/{key}`: responds with the id of a grant, or with 429.
pub(super) fn handle<B>(app: &Arc<App>, request: &Request<B>, now: Timestamp) -> ResponseFuture {
    let format = ResponseFormat::of(request.headers());
    let ready_response = |response| Either::Left(ready(Ok(response)));
    let key = match RateKey::of_path(request.uri().path(), app.serve.bounds.key) {
        Ok(key) => key,
        Err(error) => return ready_response(format.error(RateError::invalid(error))),
    };
    let table = app.rate.table();
    let query = match RateQuery::parse(request.uri(), table.allowed) {
        Ok(query) => query,
        Err(error) => return ready_response(format.error(error)),
    };
    let limits = table.of(key.name(), query.max_requests, &app.limiter);
    drop(table);
    let mut acquire = acquire(app, &key, &query, &limits, now);
    match priority::read(request.headers(), app.serve.priority_header.as_ref()) {
        Ok(Some(priority)) => acquire = acquire.priority(priority),
        Ok(None) => {}
        Err(_) => return ready_response(format.error(RateError::invalid(priority::INVALID))),
    }
    if let Some(result) = acquire.arrive() {
        return ready_response(respond(app, format, &key, query.tokens, &limits, result));
    }
    let (app, key) = (Arc::clone(app), key.into_owned());
    let waiting = WaitingRequest { app, format, key, query, limits, acquire };
    Either::Right(Box::pin(waiting.wait().map(Ok)))
}

/// Handles `/rate/`: a request without a key.
pub(super) async fn missing_key(request: Request<Body>) -> Response<Body> {
    ResponseFormat::of(request.headers()).error(RateError::invalid(EMPTY_KEY))
}

/// Handles `/rate/{key}` with another method.
pub(super) async fn method_not_allowed(request: Request<Body>) -> Response<Body> {
    let (status, text) = (StatusCode::METHOD_NOT_ALLOWED, "method not allowed; use GET or POST");
    let mut response = ResponseFormat::of(request.headers()).error(RateError { status, text });
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
    response
}

/// A request that waits.
struct WaitingRequest {
    app: Arc<App>,
    format: ResponseFormat,
    key: RateKey<'static>,
    query: RateQuery,
    limits: Arc<Limits>,
    acquire: Acquire,
}

impl WaitingRequest {
    async fn wait(mut self) -> Response<Body> {
        // A request that may not wait only waits for the backend, not in the queue.
        let _waiting = match self.query.can_wait.then(|| self.app.waiting.try_acquire()) {
            Some(Err(_)) => {
                return self.format.error(RateError::busy("the wait queue is full"));
            }
            waiting => waiting,
        };
        let mut changes = self.app.rate.changes();
        let result = loop {
            // Also on the first pass: the limits may have changed since the request arrived.
            let table = self.app.rate.table();
            let limits = table.of(self.key.name(), self.query.max_requests, &self.app.limiter);
            self.acquire.set_default_limits(&limits.default_limits);
            tokio::select! {
                biased;
                result = &mut self.acquire => break result,
                Ok(()) = changes.changed() => {}
            }
        };
        respond(&self.app, self.format, &self.key, self.query.tokens, &self.limits, result)
    }
}

fn acquire(
    app: &App,
    key: &RateKey<'_>,
    query: &RateQuery,
    limits: &Limits,
    now: Timestamp,
) -> Acquire {
    let acquire = app.rate.limiter.acquire(key.as_str(), &grants::cost(query.tokens));
    let acquire = acquire.default_limits(&limits.default_limits);
    if !query.can_wait {
        // The request fails immediately if others wait.
        return acquire.deadline(now);
    }
    let queue = query.max_in_queue.unwrap_or(limits.max_in_queue);
    let acquire = acquire.max_waiting(queue as usize);
    // `waiting.max_wait` bounds every wait.
    let longest = [query.timeout, app.max_wait()].into_iter().flatten().min();
    match longest {
        Some(time) => acquire.max_wait(time),
        None => acquire,
    }
}

fn respond(
    app: &App,
    format: ResponseFormat,
    key: &RateKey<'_>,
    tokens: u64,
    limits: &Limits,
    result: Result<Permit, AcquireError>,
) -> Response<Body> {
    let issue = |permit| app.rate.grants.issue(&app.limiter, permit, key.as_str(), tokens);
    match result.map(issue) {
        Ok(Ok(id)) => format.granted(id),
        Ok(Err(GrantLimitReached)) => format.error(RateError::busy("too many open grants")),
        Err(error) => {
            app.rate.denied.count(key.name(), limits.window, app.limiter.now());
            format.refused(&app.limiter, key.as_str(), &grants::cost(tokens), &error)
        }
    }
}
