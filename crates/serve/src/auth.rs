use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use futures_util::future::Either;
use subtle::ConstantTimeEq;
use tower::{Layer, Service};

use super::app::App;
use super::host::{self, Host};
use super::problem::Problem;
use super::single_header::only_value;

/// Returns a layer for the routes of clients, to be added with `Router::route_layer`.
///
/// It admits requests with the client token or the admin token. If there is no client token, it admits
/// requests without a token: all of them if anonymous access is allowed, otherwise only local ones.
pub(super) fn client(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::Client)
}

/// Returns a layer for the routes of the proxy. It admits the same requests as [`client`], but reads the
/// token only from `x-paceline-token`, which is not forwarded: `Authorization` belongs to the upstream.
pub(super) fn proxied(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::Proxied)
}

/// Returns a layer for routes that read keys. It admits requests with the admin token. If there is none
/// and the server listens on a loopback address, it admits local requests, which need the client token
/// if there is one.
pub(super) fn admin_read(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::AdminRead)
}

/// Returns a layer for routes that change keys. It admits requests with the admin token; if there is
/// none, it refuses all requests.
pub(super) fn admin_write(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::AdminWrite)
}

/// A layer that admits authorized requests.
#[derive(Debug, Clone)]
pub(super) struct Auth {
    app: Arc<App>,
    rule: Rule,
    error_format: ErrorFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Client,
    Proxied,
    AdminRead,
    AdminWrite,
}

/// A function that formats an error for the clients of a route.
type ErrorFormat = fn(&App, &Uri, &HeaderMap, Problem) -> Response<Body>;

/// The authenticated token: an extension of admitted requests, except those of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    /// No token.
    Anonymous,
    Client,
    Admin,
}

/// An extension of requests from a configured reverse proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct FromProxy;

/// The reason why a request is not local.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotLocal {
    /// It names another host, or comes from a page of another origin.
    Foreign,
    /// A reverse proxy forwarded it.
    Forwarded,
}

impl Auth {
    fn new(app: &Arc<App>, rule: Rule) -> Self {
        let error_format: ErrorFormat = |_, _, _, problem| problem.into_response();
        Self { app: Arc::clone(app), rule, error_format }
    }

    /// Sets the format of errors.
    pub(super) fn with_error_format(self, error_format: ErrorFormat) -> Self {
        Self { error_format, ..self }
    }

    /// Returns the response to a request that is not admitted.
    pub(super) fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        self.check(request).err().map(|problem| self.error_response(request, problem))
    }

    fn error_response<B>(&self, request: &Request<B>, problem: Problem) -> Response<Body> {
        let mut response =
            (self.error_format)(&self.app, request.uri(), request.headers(), problem);
        if response.status() == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }

    fn check<B>(&self, request: &Request<B>) -> Result<Identity, Problem> {
        let tokens = &self.app.tokens;
        let client = tokens.client.as_deref();
        let admin = tokens.admin.as_deref();
        let token = token_of(request.headers(), self.rule)?;
        let is_token = |expected: Option<&str>| {
            let pair = expected.zip(token);
            pair.is_some_and(|(expected, token)| expected.as_bytes().ct_eq(token).into())
        };
        match (self.rule, admin) {
            (Rule::Client | Rule::Proxied, _) => match client {
                Some(_) if is_token(client) => Ok(Identity::Client),
                _ if is_token(admin) => Ok(Identity::Admin),
                Some(_) => Err(unauthorized(self.rule)),
                None => match self.refusal_reason(request) {
                    None => Ok(Identity::Anonymous),
                    Some(NotLocal::Foreign) => Err(forbidden(
                        "PACELINE_TOKEN is not set, so only requests to localhost are accepted, \
                         and none from web pages of another origin; set PACELINE_TOKEN, or start \
                         the server with --allow-anonymous",
                    )),
                    Some(NotLocal::Forwarded) => Err(forbidden(
                        "a proxy forwarded this request (it has a header such as \
                         `X-Forwarded-For`), and PACELINE_TOKEN is not set, so only direct requests \
                         from this machine are accepted; set PACELINE_TOKEN, or start the server \
                         with --allow-anonymous",
                    )),
                },
            },
            (Rule::AdminRead | Rule::AdminWrite, Some(_)) => {
                match (is_token(admin), is_token(client)) {
                    (true, _) => Ok(Identity::Admin),
                    (false, true) => Err(forbidden("this requires the admin token")),
                    (false, false) => Err(unauthorized(self.rule)),
                }
            }
            (Rule::AdminRead, None) if is_loopback(self.app.addr.ip()) => {
                match (self.non_local_reason(request), client) {
                    (Some(NotLocal::Foreign), _) => Err(forbidden(
                        "PACELINE_ADMIN_TOKEN is not set, so this is available only to requests to \
                         localhost, and not to web pages of another origin",
                    )),
                    (Some(NotLocal::Forwarded), _) => Err(forbidden(
                        "a proxy forwarded this request (it has a header such as \
                         `X-Forwarded-For`), and PACELINE_ADMIN_TOKEN is not set, so this is \
                         available only to direct requests from this machine; set \
                         PACELINE_ADMIN_TOKEN on the server",
                    )),
                    (None, Some(_)) if !is_token(client) => Err(unauthorized(self.rule)),
                    (None, Some(_)) => Ok(Identity::Client),
                    (None, None) => Ok(Identity::Anonymous),
                }
            }
            (Rule::AdminRead | Rule::AdminWrite, None) => Err(forbidden(
                "this requires the admin token: set PACELINE_ADMIN_TOKEN on the server, and send it \
                 as `Authorization: Bearer`",
            )),
        }
    }

    /// Returns the reason to refuse a request without a token, where there is no client token.
    fn refusal_reason<B>(&self, request: &Request<B>) -> Option<NotLocal> {
        let App { serve, addr, .. } = &*self.app;
        match serve.allow_anonymous || !is_loopback(addr.ip()) {
            true => None,
            false => self.non_local_reason(request),
        }
    }

    /// Returns the reason why a request is not local. A web page can resolve its own host name to this
    /// server (DNS rebinding), but cannot send another `Host`, and browsers state the origin; a reverse
    /// proxy on this machine may forward requests of any client.
    fn non_local_reason<B>(&self, request: &Request<B>) -> Option<NotLocal> {
        let host = Host::of(request).filter(is_loopback_host);
        if host.is_none_or(|host| host::is_cross_origin(request.headers(), host)) {
            return Some(NotLocal::Foreign);
        }
        let has_token = self.app.tokens.client.is_some();
        let is_trusted = || has_token && request.extensions().get::<FromProxy>().is_some();
        (host::is_forwarded(request.headers()) && !is_trusted()).then_some(NotLocal::Forwarded)
    }
}

impl<S> Layer<S> for Auth {
    type Service = Authorized<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Authorized { auth: self.clone(), inner }
    }
}

/// The service of [`Auth`].
#[derive(Debug, Clone)]
pub(super) struct Authorized<S> {
    auth: Auth,
    inner: S,
}

impl<S> Service<Request<Body>> for Authorized<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response<Body>, Infallible>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.auth.check(&request) {
            Ok(identity) => {
                request.headers_mut().remove(&TOKEN);
                if self.auth.rule != Rule::Proxied {
                    request.extensions_mut().insert(identity);
                }
                Either::Right(self.inner.call(request))
            }
            Err(problem) => Either::Left(ready(Ok(self.auth.error_response(&request, problem)))),
        }
    }
}

/// Returns true for a loopback address.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Returns the token of a request.
///
/// # Errors
/// Returns a [`Problem`] for two values, of which servers may use either.
fn token_of(headers: &HeaderMap, rule: Rule) -> Result<Option<&[u8]>, Problem> {
    if let Some(token) = only_value(headers, &TOKEN)? {
        return Ok(Some(token));
    }
    if rule == Rule::Proxied {
        return Ok(None);
    }
    let token = only_value(headers, &AUTHORIZATION)?.and_then(|value| {
        let (scheme, token) = value.split_at_checked(BEARER.len())?;
        scheme.eq_ignore_ascii_case(BEARER).then(|| token.trim_ascii())
    });
    Ok(token)
}

fn is_loopback_host(host: &Host<'_>) -> bool {
    let name = host.name();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

fn unauthorized(rule: Rule) -> Problem {
    let detail = match rule {
        Rule::Proxied => "missing or invalid token; send the server's token as `x-paceline-token`",
        _ => {
            "missing or invalid token; send the server's token as `Authorization: Bearer` or \
             `x-paceline-token`"
        }
    };
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

fn forbidden(detail: &'static str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
}

const BEARER: &[u8] = b"bearer ";

/// The server's own header for tokens, because `Authorization` of a proxied request belongs to the
/// upstream.
const TOKEN: HeaderName = HeaderName::from_static("x-paceline-token");
