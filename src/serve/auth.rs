use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use axum::response::IntoResponse;
use futures_util::future::Either;
use subtle::ConstantTimeEq;
use tower::{Layer, Service};

use super::app::App;
use super::problem::Problem;

/// Lets through who may ask: anybody, if there is no token for clients. For `Router::route_layer`, as
/// those below.
pub(super) fn client(app: &Arc<App>) -> Auth {
    Auth { app: Arc::clone(app), rule: Rule::Client }
}

/// The same where `Authorization` belongs to the upstream: the token is shown as `x-tollgate-token`,
/// which goes no further.
pub(super) fn proxied(app: &Arc<App>) -> Auth {
    Auth { app: Arc::clone(app), rule: Rule::Proxied }
}

/// Lets through who may look at keys: who has the admin token, or, if there is none and the server
/// listens on this machine's own address, who may ask.
pub(super) fn admin_read(app: &Arc<App>) -> Auth {
    Auth { app: Arc::clone(app), rule: Rule::AdminRead }
}

/// Lets through who has the admin token; nobody, if there is none.
pub(super) fn admin_write(app: &Arc<App>) -> Auth {
    Auth { app: Arc::clone(app), rule: Rule::AdminWrite }
}

/// Who is let through to a route.
#[derive(Debug, Clone)]
pub(super) struct Auth {
    app: Arc<App>,
    rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Client,
    Proxied,
    AdminRead,
    AdminWrite,
}

impl Auth {
    /// The answer to a request that isn't let through.
    pub(super) fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        self.check(request).err().map(refused)
    }

    fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let tokens = &self.app.tokens;
        let client = tokens.client.as_deref();
        let admin = tokens.admin.as_deref();
        let shown = shown(request.headers(), self.rule);
        let is = |token: Option<&str>| {
            token.zip(shown).is_some_and(|(token, shown)| token.as_bytes().ct_eq(shown).into())
        };
        match (self.rule, admin) {
            (Rule::Client | Rule::Proxied, _) => match client {
                Some(_) if !is(client) && !is(admin) => Err(unauthorized(self.rule)),
                None if !self.is_anybody_here(request) => Err(forbidden(
                    "without TOLLGATE_TOKEN this answers who asks for localhost, and no page of another \
                     site; set it, or start the server with --allow-anonymous",
                )),
                _ => Ok(()),
            },
            (Rule::AdminRead | Rule::AdminWrite, Some(_)) => match (is(admin), is(client)) {
                (true, _) => Ok(()),
                (false, true) => Err(forbidden("this needs the token of an admin")),
                (false, false) => Err(unauthorized(self.rule)),
            },
            (Rule::AdminRead, None) if is_own(self.app.addr.ip()) => match client {
                _ if !asked_here(request) => Err(forbidden(
                    "without TOLLGATE_ADMIN_TOKEN this is shown to who asks for localhost alone",
                )),
                Some(_) if !is(client) => Err(unauthorized(self.rule)),
                _ => Ok(()),
            },
            (Rule::AdminRead | Rule::AdminWrite, None) => Err(forbidden(
                "this is for admins: set TOLLGATE_ADMIN_TOKEN where the server runs, and show it as \
                 `Authorization: Bearer`",
            )),
        }
    }

    /// Whether who shows no token may ask, where there is none for clients. On this machine's own address
    /// that is who means it: not a page of another site, in the browser of somebody here.
    fn is_anybody_here<B>(&self, request: &Request<B>) -> bool {
        let App { serve, addr, .. } = &*self.app;
        serve.allow_anonymous || !is_own(addr.ip()) || asked_here(request)
    }
}

impl<S> Layer<S> for Auth {
    type Service = Authorized<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Authorized { auth: self.clone(), inner }
    }
}

/// A route behind it.
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
        match self.auth.refusal(&request) {
            None => {
                request.headers_mut().remove(&TOKEN);
                Either::Right(self.inner.call(request))
            }
            Some(refusal) => Either::Left(ready(Ok(refusal))),
        }
    }
}

/// Whether an address is one that only this machine reaches.
pub(super) fn is_own(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The token that a request shows.
fn shown(headers: &HeaderMap, rule: Rule) -> Option<&[u8]> {
    if let Some(token) = headers.get(&TOKEN) {
        return Some(token.as_bytes());
    }
    let value = headers.get(AUTHORIZATION).filter(|_| rule != Rule::Proxied)?.as_bytes();
    let (scheme, token) = value.split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| token.trim_ascii())
}

/// Whether the request names this machine's own address, and isn't another site's: a page can make its
/// own name lead here (DNS rebinding), but not be called so; and browsers tell who asks.
fn asked_here<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let named = match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => headers.get(HOST).and_then(|host| host.to_str().ok()),
    };
    let host = named.map(|authority| match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    });
    let is_own =
        |host: &str| host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_own);
    host.is_some_and(is_own) && headers.get(&SITE).is_none_or(|site| site != "cross-site")
}

fn unauthorized(rule: Rule) -> Problem {
    let detail = match rule {
        Rule::Proxied => "show the token of this server as `x-tollgate-token`",
        _ => "show the token of this server as `Authorization: Bearer`, or as `x-tollgate-token`",
    };
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

fn forbidden(detail: &'static str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
}

fn refused(problem: Problem) -> Response<Body> {
    let mut response = problem.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

const BEARER: &[u8] = b"bearer ";

/// Whose page asks, as browsers tell it (W3C, Fetch Metadata).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Ours alone: what stands in `Authorization` on the way to an upstream is the upstream's.
const TOKEN: HeaderName = HeaderName::from_static("x-tollgate-token");
