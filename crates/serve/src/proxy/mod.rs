//! The proxy in front of providers: what comes to `/NAME/...` goes to the upstream of that name once it
//! fits its limits.
//!
//! | what | how it passes |
//! |---|---|
//! | body of a request | read whole first, up to `serve.bounds.body`: what it costs stands in it. All that are held together have `serve.bounds.buffered` |
//! | body of an answer | as it comes, its bytes unchanged, never more than a frame ahead of its client |
//! | path and query | as they were written, below the upstream's base URL; `..` in any writing is refused |
//! | header fields | unchanged, but for those of one hop (RFC 9110, 7.6.1), `host`, `expect`, and `x-tollgate-*`, which is for this server. No `via` or `x-forwarded-for` is added |
//! | `accept-encoding` | of what is charged: `identity`, since usage can't be read out of what is compressed. An answer that comes compressed all the same passes, and counts as it was reserved |
//! | cookies | in one field, into however many HTTP/2 has split them (RFC 9113, 8.2.3) |
//! | trailers | pass |
//! | redirects | pass, and are not followed |
//! | WebSocket | refused, 501 |
//! | CONNECT, TRACE | refused, 405 |
//! | what can't be read for certain | refused, 400, and a `content-encoding` but `identity`, 415: two servers may see two models in it, or none. `serve.unread: allow` lets it pass, charged by its size |
//! | answers to browsers | with `content-security-policy: sandbox` and `x-content-type-options: nosniff`, so that no page of an upstream's runs as one of this server's |
//!
//! A GET, HEAD, OPTIONS or DELETE without a body isn't charged: no provider counts lists of models and the
//! like. All else is, whatever its method. Paths whose requests have no model (files, batches and such)
//! are never refused for what they hold. The upstream comes from the
//! configuration alone, never from what a request says of hosts. What the proxy refuses itself is a
//! problem document with an `error` as the provider writes it. A client that goes away takes its request
//! with it: it leaves the queue, or the upstream's connection is closed, and its reservation settles.
//!
//! By `https` an upstream is spoken to over HTTP/2 if it agrees: one connection for all requests to it, as
//! many at a time as it takes streams, the others behind them. It is trusted as the system says, or
//! `SSL_CERT_FILE`.
//!
//! A request that met a connection which its upstream had just closed is sent again, where nobody can
//! have read it, or where its method is idempotent (RFC 9110, 9.2.2). Connections that no request uses
//! are kept for `serve.bounds.upstream_idle`. What is a failure even so, after the proxy has sent it
//! more than once, says `x-should-retry: false`: clients that know the field, as the official SDKs of
//! OpenAI and Anthropic, then send nothing again by themselves.
//!
//! A base URL that ends in the version of an API (`/v1`, `/v1beta`) is not followed by the same segment
//! of a path: `/NAME/v1/models` goes to `BASE_URL/models` there.
//!
//! It doesn't keep what passes, nor read more of it than the cost of a request and the usage of an
//! answer.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Response, Uri};
use axum::routing::any;

use self::client::Client;
use self::format::Format;
use self::forward::{forward, split};
use self::room::Room;
use self::upstream::Upstream;
use super::app::App;
use super::auth;
use super::problem::Problem;
use tollgate::limiter::KeyBudget;

mod base;
mod client;
mod format;
mod forward;
mod headers;
mod pooled;
mod room;
mod scopes;
mod trust;
mod upstream;

/// Its routes.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let proxy = Arc::new(Proxy::new(app));
    Router::new()
        .route("/{upstream}", any(forward))
        .route("/{upstream}/", any(forward))
        .route("/{upstream}/{*path}", any(forward))
        .route_layer(auth::proxied(app).told_as(told))
        .with_state(proxy)
}

/// What is wrong with a request that isn't read, as its upstream tells it.
fn told(app: &App, uri: &Uri, _: &HeaderMap, problem: Problem) -> Response<Body> {
    let (name, _) = split(uri.path());
    let upstream = app.serve.upstreams.iter().find(|upstream| upstream.name == name);
    let format = upstream.map_or(Format::OpenAi, |upstream| Format::of(upstream.profile));
    format.problem(problem)
}

/// The upstreams, and what all of them share.
#[derive(Debug)]
struct Proxy {
    app: Arc<App>,
    upstreams: Vec<Upstream>,
    /// For the bodies of requests.
    room: Arc<Room>,
}

impl Proxy {
    fn new(app: &Arc<App>) -> Self {
        let client = Client::new(&app.serve.bounds);
        let budget = KeyBudget::new(app.serve.bounds.proxy_keys);
        let limiter = app.limiter.with_key_budget(budget);
        let of = |upstream| Upstream::new(upstream, app, &limiter, &client);
        let upstreams = app.serve.upstreams.iter().filter_map(of).collect();
        let room = Room::of(app.serve.bounds.buffered);
        Self { app: Arc::clone(app), upstreams, room }
    }
}
