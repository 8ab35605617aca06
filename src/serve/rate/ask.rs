use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode};

use super::answer::Form;
use super::asked::Asked;
use super::grants::{self, Grants, TooMany};
use super::key::{self, NO_KEY};
use super::limits::Limits;
use crate::limiter::{Acquire, AcquireError, Permit};
use crate::serve::app::App;

/// `POST` or `GET /rate/{key}`: the id of a grant, or 429.
pub(super) async fn ask(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let form = Form::asked(request.headers());
    let (head, _) = request.into_parts();
    if head.method == Method::HEAD {
        // Who only looks takes nothing.
        return form.wrong((StatusCode::METHOD_NOT_ALLOWED, "only POST and GET take"));
    }
    let segment = head.uri.path().strip_prefix("/rate/").unwrap_or_default();
    let key = match key::read(segment, (NO_KEY, app.serve.bounds.key)) {
        Ok(key) => key,
        Err(what) => return form.wrong((StatusCode::BAD_REQUEST, what)),
    };
    let table = app.rate.table();
    let asked = match Asked::read(&head.uri, table.allowed) {
        Ok(asked) => asked,
        Err(wrong) => return form.wrong(wrong),
    };
    let limits = table.of((&key, asked.max_requests), &app.limiter);
    drop(table);
    match acquire(&app, &key, &asked, &limits).await {
        Ok(permit) => match Grants::issue(&app, permit, (&key, asked.tokens)) {
            Ok(id) => form.granted(id),
            Err(TooMany) => form.wrong((StatusCode::SERVICE_UNAVAILABLE, "too many are held")),
        },
        Err(Refusal::Busy) => {
            form.wrong((StatusCode::SERVICE_UNAVAILABLE, "too many requests wait"))
        }
        Err(Refusal::By(error)) => {
            app.rate.denied.count(&key, limits.window, app.limiter.now());
            form.refused(&app.limiter, (&key, &grants::cost(asked.tokens)), &error)
        }
    }
}

/// `/rate/`, where the key is left out.
pub(super) async fn no_key(request: Request) -> Response<Body> {
    Form::asked(request.headers()).wrong((StatusCode::BAD_REQUEST, NO_KEY))
}

/// Why there is no permit.
enum Refusal {
    By(AcquireError),
    /// So many wait, whatever for, that nobody else can.
    Busy,
}

async fn acquire(app: &App, key: &str, asked: &Asked, limits: &Limits) -> Result<Permit, Refusal> {
    let acquire = app.limiter.acquire(key, &grants::cost(asked.tokens));
    let acquire = acquire.default_limits(&limits.made);
    if !asked.can_wait {
        // It takes its place and gives it up in one look: none passes who waits.
        let acquire = acquire.deadline(app.limiter.now());
        return acquire.await.map_err(Refusal::By);
    }
    let queue = asked.max_in_queue.unwrap_or(limits.max_in_queue);
    let acquire = acquire.max_waiting(queue as usize);
    // Nobody waits longer than the server lets.
    let longest = [asked.timeout, app.config.waiting.max_wait].into_iter().flatten().min();
    let mut acquire = match longest {
        Some(time) => acquire.max_wait(time),
        None => acquire,
    };
    if let Some(ended) = acquire.arrive() {
        return ended.map_err(Refusal::By);
    }
    let _waiting = app.waiting.try_acquire().map_err(|_| Refusal::Busy)?;
    wait(app, (key, asked.max_requests), acquire).await.map_err(Refusal::By)
}

/// Waits in its place, by the limits of the moment.
async fn wait(
    app: &App,
    key: (&str, Option<u32>),
    mut acquire: Acquire,
) -> Result<Permit, AcquireError> {
    let mut changes = app.rate.changes();
    loop {
        // Also at first: they may have changed since it came.
        let limits = app.rate.table().of(key, &app.limiter);
        acquire.set_default_limits(&limits.made);
        tokio::select! {
            biased;
            ended = &mut acquire => return ended,
            Ok(()) = changes.changed() => {}
        }
    }
}
