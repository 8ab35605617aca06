use std::future::ready;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use futures_util::FutureExt;
use futures_util::future::Either;

use super::Answer;
use super::answer::Form;
use super::asked::Asked;
use super::grants::{self, Grants, TooMany};
use super::key::{self, NO_KEY};
use super::limits::Limits;
use crate::app::App;
use tollgate::Timestamp;
use tollgate::limiter::{Acquire, AcquireError, Permit};

/// `POST` or `GET /rate/{key}`: the id of a grant, or 429.
pub(super) fn ask<B>(app: &Arc<App>, request: &Request<B>, now: Timestamp) -> Answer {
    let form = Form::asked(request.headers());
    let at_once = |response| Either::Left(ready(Ok(response)));
    let segment = request.uri().path().strip_prefix("/rate/").unwrap_or_default();
    let key = match key::read(segment, (NO_KEY, app.serve.bounds.key)) {
        Ok(key) => key,
        Err(what) => return at_once(form.wrong((StatusCode::BAD_REQUEST, what))),
    };
    let table = app.rate.table();
    let asked = match Asked::read(request.uri(), table.allowed) {
        Ok(asked) => asked,
        Err(wrong) => return at_once(form.wrong(wrong)),
    };
    let limits = table.of((&key, asked.max_requests), &app.limiter);
    drop(table);
    let mut acquire = acquire(app, &key, (&asked, &limits), now);
    if let Some(ended) = acquire.arrive() {
        return at_once(answer(app, form, (&key, asked.tokens, &limits), ended));
    }
    let (app, key) = (Arc::clone(app), key.into_owned());
    let waiting = Waiting { app, form, key, asked, limits, acquire };
    Either::Right(Box::pin(waiting.wait().map(Ok)))
}

/// `/rate/`, where the key is left out.
pub(super) async fn no_key(request: Request<Body>) -> Response<Body> {
    Form::asked(request.headers()).wrong((StatusCode::BAD_REQUEST, NO_KEY))
}

/// `/rate/{key}` by another method: who only looks takes nothing.
pub(super) async fn no_method(request: Request<Body>) -> Response<Body> {
    let wrong = (StatusCode::METHOD_NOT_ALLOWED, "only POST and GET take");
    let mut response = Form::asked(request.headers()).wrong(wrong);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
    response
}

/// Who waits, in its place.
struct Waiting {
    app: Arc<App>,
    form: Form,
    key: String,
    asked: Asked,
    limits: Arc<Limits>,
    acquire: Acquire,
}

impl Waiting {
    async fn wait(mut self) -> Response<Body> {
        // Without leave to wait it is for what a backend says, and not for room.
        let _waiting = match self.asked.can_wait.then(|| self.app.waiting.try_acquire()) {
            Some(Err(_)) => {
                let busy = (StatusCode::SERVICE_UNAVAILABLE, "too many requests wait");
                return self.form.wrong(busy);
            }
            waiting => waiting,
        };
        let mut changes = self.app.rate.changes();
        let ended = loop {
            // Also at first: they may have changed since it came.
            let of = (&*self.key, self.asked.max_requests);
            let limits = self.app.rate.table().of(of, &self.app.limiter);
            self.acquire.set_default_limits(&limits.made);
            tokio::select! {
                biased;
                ended = &mut self.acquire => break ended,
                Ok(()) = changes.changed() => {}
            }
        };
        let of = (&*self.key, self.asked.tokens, &*self.limits);
        answer(&self.app, self.form, of, ended)
    }
}

fn acquire(app: &App, key: &str, (asked, limits): (&Asked, &Limits), now: Timestamp) -> Acquire {
    let acquire = app.rate.limiter.acquire(key, &grants::cost(asked.tokens));
    let acquire = acquire.default_limits(&limits.made);
    if !asked.can_wait {
        // It takes its place and gives it up in one look: none passes who waits.
        return acquire.deadline(now);
    }
    let queue = asked.max_in_queue.unwrap_or(limits.max_in_queue);
    let acquire = acquire.max_waiting(queue as usize);
    // Nobody waits longer than the server lets.
    let longest = [asked.timeout, app.config.waiting.max_wait].into_iter().flatten().min();
    match longest {
        Some(time) => acquire.max_wait(time),
        None => acquire,
    }
}

fn answer(
    app: &App,
    form: Form,
    (key, tokens, limits): (&str, u64, &Limits),
    ended: Result<Permit, AcquireError>,
) -> Response<Body> {
    match ended.map(|permit| Grants::issue(app, permit, (key, tokens))) {
        Ok(Ok(id)) => form.granted(id),
        Ok(Err(TooMany)) => form.wrong((StatusCode::SERVICE_UNAVAILABLE, "too many are held")),
        Err(error) => {
            app.rate.denied.count(key, limits.window, app.limiter.now());
            form.refused(&app.limiter, (key, &grants::cost(tokens)), &error)
        }
    }
}
