//! The proxy in front of providers: requests to `/NAME/...` are forwarded to the upstream of that name
//! as soon as its limits allow.
//!
//! | part | handling |
//! |---|---|
//! | request body | read completely, up to `serve.bounds.body`, because it determines the cost; all bodies together up to `serve.bounds.buffered`, and those of a client address up to half of what the others leave |
//! | response body | streamed unchanged, at most one frame ahead of the client, except for a chunk of usage that the client hasn't asked for |
//! | `stream_options.include_usage` | set in streams of chats to OpenAI, Azure, vLLM and Alibaba, which state no usage otherwise; the chunk with the usage, whose `choices` are empty, is taken out of the response again, unless the client has asked for it. The other chunks keep the `"usage":null` that OpenAI adds. A request with a digest of its body is not changed |
//! | path and query | unchanged, below the upstream's base URL; `..` in any spelling is refused |
//! | headers | unchanged, except hop-by-hop headers (RFC 9110, 7.6.1), `host`, `expect`, `x-paceline-*`, and `serve.priority_header`. No `via` or `x-forwarded-for` is added |
//! | `accept-encoding` | `identity` for charged requests, because usage cannot be read from a compressed response. A response that is compressed anyway is forwarded, and charged as reserved |
//! | cookies | joined into one header, even if HTTP/2 split them (RFC 9113, 8.2.3) |
//! | trailers | forwarded |
//! | redirects | forwarded, not followed |
//! | WebSocket | refused, 426: clients such as Codex then use HTTP |
//! | CONNECT, TRACE | refused, 405 |
//! | compressed body (gzip, deflate, br, zstd) | read decompressed, and forwarded as it came; without compression if the proxy asks for the usage of a stream |
//! | undeterminable model | refused: 400, or 415 for an unknown `content-encoding`, because two servers may read two models from such a request, or none. `serve.unread: allow` forwards it and charges by its size |
//! | responses to browsers | with `content-security-policy: sandbox` and `x-content-type-options: nosniff`, so that no page of an upstream runs in this server's origin |
//!
//! A GET, HEAD, OPTIONS or DELETE without a body is not charged: providers do not count requests such
//! as a list of models. All other requests are, and, where spending is limited, those of them that the provider's
//! profile does not list as free (`Profile::is_free`). Requests on paths without a model (files, batches and
//! such) are never refused because of their content. The upstream is determined by the configuration
//! alone, never by a host in a request. An error of the proxy itself is a problem document with an
//! `error` in the provider's format. If a client disconnects, its request leaves the queue, or the
//! upstream's connection is closed and the reservation is settled.
//!
//! With `https`, an upstream is reached over HTTP/2 if it supports it, with one connection for all
//! requests; requests beyond its maximum number of streams wait. The system's trusted certificates
//! apply, or those of `SSL_CERT_FILE`.
//!
//! A request that was sent on a connection which the upstream had just closed is sent again if the
//! upstream cannot have read it, if its method is idempotent (RFC 9110, 9.2.2), or if the connection was reset
//! within a second before anything of a response arrived. Idle connections are
//! kept for `serve.bounds.upstream_idle`. A failure after more than one attempt has `x-should-retry:
//! false`, so that clients that know this header, such as the official SDKs of OpenAI and Anthropic, do
//! not retry in addition.
//!
//! If a base URL ends in an API version (`/v1`, `/v1beta`) and the path starts with the same version,
//! it is not repeated: `/NAME/v1/models` is sent to `BASE_URL/models`.
//!
//! Bodies are not stored; they are read only for the cost of a request and the usage of a response.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Response, Uri};
use axum::routing::any;

use self::error_format::ErrorFormat;
use self::forward::forward;
use self::path::split;
pub(super) use self::path::unknown_upstream;
use self::state::Proxy;
use super::app::App;
use super::auth;
use super::problem::Problem;
use super::route::PROXY;

mod base_url;
mod client;
mod encoded_body;
mod error_format;
mod forward;
mod headers;
mod key_sources;
mod path;
mod state;
mod tls;
mod tracked_stream;
mod upstream;

/// Returns the routes of the proxy.
pub(super) fn routes(app: &Arc<App>) -> Router {
    let proxy = Arc::new(Proxy::new(app));
    let routes = PROXY.iter().fold(Router::new(), |routes, path| routes.route(path, any(forward)));
    routes.route_layer(auth::proxied(app).with_error_format(format_error)).with_state(proxy)
}

/// Formats an error in the format of the upstream's provider.
fn format_error(app: &App, uri: &Uri, _: &HeaderMap, problem: Problem) -> Response<Body> {
    let (name, _) = split(uri.path());
    let upstream = app.serve.upstreams.iter().find(|upstream| upstream.name == name);
    let format = upstream.map_or(ErrorFormat::OpenAi, |upstream| ErrorFormat::of(upstream.profile));
    format.problem(problem)
}
