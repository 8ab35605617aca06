//! The rate-limit service, compatible with clients of GoCC.
//!
//! A key with a quota has the limits of that quota; any other key has the limits of `serve.keys` merged
//! over those of `serve`. Most grants need no state: their id contains everything that is needed to
//! return them. Grants of keys with a limit on requests in flight end when they are returned, or after
//! `serve.reservation_ttl`. Grants of limits that a cluster shares can be returned within that time
//! only, and not at all if they charged tokens.

mod accept;
mod acquire;
mod cleanup;
mod debug;
mod denial_counts;
mod grant_id;
mod grants;
mod held_permits;
mod limit_table;
mod path_segment;
mod rate_error;
mod rate_key;
mod rate_query;
pub(super) mod rate_service;
mod response_format;
mod response_future;
mod return_grant;
mod returned_grants;

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{any, delete, get};
use futures_util::future::Either;
use http_body_util::BodyExt;

use self::response_format::ResponseFormat;
use super::answer;
use super::app::App;
use super::auth::{self, Auth};
use super::problem::Problem;
use super::route::{self, Route};
use paceline::Timestamp;
pub(super) use response_future::ResponseFuture;

/// Returns true for a request for a grant. Such requests are the most frequent ones and bypass the
/// router, which would take most of their time.
pub(super) fn is_acquire(method: &Method, route: Route) -> bool {
    [Method::POST, Method::GET].contains(method) && route == Route::Rate
}

/// Returns the authorization of requests for grants.
pub(super) fn client(app: &Arc<App>) -> Auth {
    auth::client(app).with_error_format(format_error)
}

/// Formats an error as text, like GoCC, or as a problem document for clients that prefer JSON.
pub(super) fn format_error(
    _: &App,
    _: &Uri,
    headers: &HeaderMap,
    problem: Problem,
) -> Response<Body> {
    ResponseFormat::of(headers).problem(problem)
}

/// Handles a request for a grant. The caller [reads](after_body) its body, if it has one.
pub(super) fn acquire<B>(
    app: &Arc<App>,
    client: &Auth,
    request: &Request<B>,
    now: Timestamp,
) -> ResponseFuture {
    match client.refusal(request) {
        Some(refusal) => Either::Left(ready(Ok(refusal))),
        None => acquire::handle(app, request, now),
    }
}

/// Reads and discards the request body, also while the request waits, so that no buffer keeps it. The response is sent
/// after it; otherwise the connection could not be reused.
pub(super) fn after_body(response: ResponseFuture, mut body: Body) -> ResponseFuture {
    Either::Right(Box::pin(async move {
        let read = async { while let Some(Ok(_)) = body.frame().await {} };
        futures_util::future::join(response, read).await.0
    }))
}

/// Returns the other routes, and starts the tasks that end grants and drop expired state until the
/// server stops.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let (limiter, stopping) = (&app.limiter, &app.stopping);
    tokio::spawn(app.rate.grants.held().run(limiter.clone(), stopping.clone()));
    tokio::spawn(cleanup::run(Arc::downgrade(app), limiter.clone(), stopping.clone()));
    let rates = Router::new()
        // Requests for grants bypass the router.
        .route(Route::Rate.path(), any(acquire::method_not_allowed))
        .route(Route::RateGrant.path(), delete(return_grant::return_grant))
        // GoCC's responses without a key or an id.
        .route(route::RATE_WITHOUT_KEY, any(acquire::missing_key))
        .route(route::RATE_GRANT_WITHOUT_ID, delete(return_grant::missing_id))
        .route_layer(client(app));
    let debug = Router::new()
        .route(Route::Debug.path(), get(debug::all))
        .route(Route::DebugKey.path(), get(debug::one))
        .route_layer(auth::admin_read(app).with_error_format(format_error))
        .layer(from_fn_with_state(Arc::clone(app), answer::complete));
    rates.merge(debug).with_state(Arc::clone(app))
}
