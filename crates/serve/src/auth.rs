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

/// Lets through who may ask: anybody, if there is no token for clients. For `Router::route_layer`, as
/// those below.
pub(super) fn client(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::Client)
}

/// The same where `Authorization` belongs to the upstream: the token is shown as `x-tollgate-token`,
/// which goes no further.
pub(super) fn proxied(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::Proxied)
}

/// Lets through who may look at keys: who has the admin token, or, if there is none and the server
/// listens on this machine's own address, who may ask.
pub(super) fn admin_read(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::AdminRead)
}

/// Lets through who has the admin token; nobody, if there is none.
pub(super) fn admin_write(app: &Arc<App>) -> Auth {
    Auth::new(app, Rule::AdminWrite)
}

/// Who is let through to a route.
#[derive(Debug, Clone)]
pub(super) struct Auth {
    app: Arc<App>,
    rule: Rule,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Client,
    Proxied,
    AdminRead,
    AdminWrite,
}

/// How the clients of a route are told that they aren't let through, by what they asked for.
type Form = fn(&App, &Uri, &HeaderMap, Problem) -> Response<Body>;

/// Whose token a request that was let through has shown: an extension of requests, but for those that
/// are proxied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// Without a token.
    Anybody,
    Client,
    Admin,
}

/// An extension of requests whose connection is that of a configured proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct FromProxy;

/// Why a request doesn't count as one of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotLocal {
    /// It names another host, or a page of another origin asks.
    Foreign,
    /// A reverse proxy has forwarded it.
    Forwarded,
}

impl Auth {
    fn new(app: &Arc<App>, rule: Rule) -> Self {
        let form: Form = |_, _, _, problem| problem.into_response();
        Self { app: Arc::clone(app), rule, form }
    }

    /// The same for a route that tells what is wrong in this form.
    pub(super) fn told_as(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// The answer to a request that isn't let through.
    pub(super) fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        self.check(request).err().map(|problem| self.refused(request, problem))
    }

    fn refused<B>(&self, request: &Request<B>, problem: Problem) -> Response<Body> {
        let mut response = (self.form)(&self.app, request.uri(), request.headers(), problem);
        if response.status() == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }

    fn check<B>(&self, request: &Request<B>) -> Result<Holder, Problem> {
        let tokens = &self.app.tokens;
        let client = tokens.client.as_deref();
        let admin = tokens.admin.as_deref();
        let shown = shown(request.headers(), self.rule);
        let is = |token: Option<&str>| {
            token.zip(shown).is_some_and(|(token, shown)| token.as_bytes().ct_eq(shown).into())
        };
        match (self.rule, admin) {
            (Rule::Client | Rule::Proxied, _) => match client {
                Some(_) if is(client) => Ok(Holder::Client),
                _ if is(admin) => Ok(Holder::Admin),
                Some(_) => Err(unauthorized(self.rule)),
                None => match self.not_from_here(request) {
                    None => Ok(Holder::Anybody),
                    Some(NotLocal::Foreign) => Err(forbidden(
                        "without TOLLGATE_TOKEN the server answers only requests to localhost, and \
                         none from a page of another origin; set it, or start the server with \
                         --allow-anonymous",
                    )),
                    Some(NotLocal::Forwarded) => Err(forbidden(
                        "a proxy has forwarded this request (it has a header such as \
                         `X-Forwarded-For`), and without TOLLGATE_TOKEN the server answers this \
                         machine alone; set it, or start the server with --allow-anonymous",
                    )),
                },
            },
            (Rule::AdminRead | Rule::AdminWrite, Some(_)) => match (is(admin), is(client)) {
                (true, _) => Ok(Holder::Admin),
                (false, true) => Err(forbidden("this needs the token of an admin")),
                (false, false) => Err(unauthorized(self.rule)),
            },
            (Rule::AdminRead, None) if is_own(self.app.addr.ip()) => {
                match (self.not_local(request), client) {
                    (Some(NotLocal::Foreign), _) => Err(forbidden(
                        "without TOLLGATE_ADMIN_TOKEN this is shown to who asks for localhost alone",
                    )),
                    (Some(NotLocal::Forwarded), _) => Err(forbidden(
                        "a proxy has forwarded this request (it has a header such as \
                         `X-Forwarded-For`), and without TOLLGATE_ADMIN_TOKEN this is shown to this \
                         machine alone; set it where the server runs",
                    )),
                    (None, Some(_)) if !is(client) => Err(unauthorized(self.rule)),
                    (None, Some(_)) => Ok(Holder::Client),
                    (None, None) => Ok(Holder::Anybody),
                }
            }
            (Rule::AdminRead | Rule::AdminWrite, None) => Err(forbidden(
                "this is for admins: set TOLLGATE_ADMIN_TOKEN where the server runs, and show it as \
                 `Authorization: Bearer`",
            )),
        }
    }

    /// Why who shows no token may not ask, where there is none for clients.
    fn not_from_here<B>(&self, request: &Request<B>) -> Option<NotLocal> {
        let App { serve, addr, .. } = &*self.app;
        match serve.allow_anonymous || !is_own(addr.ip()) {
            true => None,
            false => self.not_local(request),
        }
    }

    /// Why a request isn't one of this machine, if it isn't. A page can make its own name lead here (DNS
    /// rebinding), but not be called so, and browsers tell who asks; a reverse proxy here may ask for
    /// anybody.
    fn not_local<B>(&self, request: &Request<B>) -> Option<NotLocal> {
        let host = Host::of(request).filter(names_this_machine);
        if host.is_none_or(|host| host::is_of_another_page(request.headers(), host)) {
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
        match self.auth.check(&request) {
            Ok(holder) => {
                request.headers_mut().remove(&TOKEN);
                if self.auth.rule != Rule::Proxied {
                    request.extensions_mut().insert(holder);
                }
                Either::Right(self.inner.call(request))
            }
            Err(problem) => Either::Left(ready(Ok(self.auth.refused(&request, problem)))),
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

fn names_this_machine(host: &Host<'_>) -> bool {
    let name = host.name();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_own)
}

fn unauthorized(rule: Rule) -> Problem {
    let detail = match rule {
        Rule::Proxied => "send the token of this server as `x-tollgate-token`",
        _ => "send the token of this server as `Authorization: Bearer`, or as `x-tollgate-token`",
    };
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

fn forbidden(detail: &'static str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
}

const BEARER: &[u8] = b"bearer ";

/// Ours alone: what stands in `Authorization` on the way to an upstream is the upstream's.
const TOKEN: HeaderName = HeaderName::from_static("x-tollgate-token");
