//! The rate-limit service, as GoCC's clients ask it.
//!
//! A key that a quota of the configuration names has that quota; any other has the limits of
//! `serve.keys` over those of `serve`. Of most grants nothing is kept: what is needed to give one back is
//! in its id. What ends when its client says so, and else at `serve.reservation_ttl`, are those of keys
//! that count requests in flight; those of limits that a cluster shares can be given back for no longer
//! than that, and not at all where they took tokens of such limits.

mod accept;
mod answer;
mod ask;
mod asked;
mod debug;
mod denied;
mod forget;
mod give_back;
mod grants;
mod held;
mod id;
mod key;
mod limits;
mod returned;
mod state;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, Uri};
use axum::routing::{any, delete, get};
use futures_util::future::Either;
use http_body_util::BodyExt;

use self::answer::Form;
use super::app::App;
use super::auth::{self, Auth};
use super::compressed::compressed;
use super::problem::Problem;
use super::route::Route;
pub(super) use state::Rate;
use tollgate::Timestamp;

/// The answer to a request for a rate: at once, unless it waits.
pub(super) type Answer = Either<Ready<Answered>, Pin<Box<dyn Future<Output = Answered> + Send>>>;

type Answered = Result<Response<Body>, Infallible>;

/// Whether a request asks for a rate. It goes a way of its own: it is asked for more than all else, and the
/// table of all routes would be most of what it takes.
pub(super) fn is_asked(method: &Method, route: Route) -> bool {
    [Method::POST, Method::GET].contains(method) && route == Route::RATE
}

/// Who may ask for one.
pub(super) fn client(app: &Arc<App>) -> Auth {
    auth::client(app).told_as(told)
}

/// What is wrong as GoCC tells it, in text; or as a problem document to who would rather have JSON.
pub(super) fn told(_: &App, _: &Uri, headers: &HeaderMap, problem: Problem) -> Response<Body> {
    Form::asked(headers).problem(problem)
}

/// That way. Its body, if it has one, is [read](after_body) before it is answered.
pub(super) fn ask<B>(
    app: &Arc<App>,
    client: &Auth,
    request: &Request<B>,
    now: Timestamp,
) -> Answer {
    match client.refusal(request) {
        Some(refusal) => Either::Left(ready(Ok(refusal))),
        None => ask::ask(app, request, now),
    }
}

/// The same after a body that says nothing: what isn't read would be the end of its connection.
pub(super) fn after_body(answer: Answer, mut body: Body) -> Answer {
    Either::Right(Box::pin(async move {
        let answer = answer.await;
        while let Some(Ok(_)) = body.frame().await {}
        answer
    }))
}

/// Its other routes. Starts what ends grants at their time and forgets what was long ago, until the server
/// stops.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let (limiter, stopping) = (&app.limiter, &app.stopping);
    tokio::spawn(app.rate.grants.held().run(limiter.clone(), stopping.clone()));
    tokio::spawn(forget::run(Arc::downgrade(app), limiter.clone(), stopping.clone()));
    let rates = Router::new()
        // What doesn't ask for a rate.
        .route("/rate/{key}", any(ask::no_method))
        .route("/rate/{key}/{id}", delete(give_back::give_back))
        // GoCC's answers where the key or the id is left out.
        .route("/rate/", any(ask::no_key))
        .route("/rate/{key}/", delete(give_back::no_id))
        .route_layer(client(app));
    let debug = Router::new()
        .route("/debug", get(debug::all))
        .route("/debug/{key}", get(debug::one))
        .route_layer(auth::admin_read(app).told_as(told))
        .layer(compressed());
    rates.merge(debug).with_state(Arc::clone(app))
}
