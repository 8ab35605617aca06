use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};

use super::answer::{Form, done};
use super::key::{self, NO_ID, NO_KEY};
use super::returned::NotReturned;
use crate::app::App;

/// `DELETE /rate/{key}/{id}`: gives a grant of this key back, while it counts.
pub(super) async fn give_back(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let form = Form::asked(request.headers());
    match given_back(&app, request.uri().path()) {
        Ok(()) => done(),
        Err(wrong) => form.wrong(wrong),
    }
}

/// The same, where the id is left out.
pub(super) async fn no_id(request: Request) -> Response<Body> {
    Form::asked(request.headers()).wrong((StatusCode::BAD_REQUEST, NO_ID))
}

fn given_back(app: &App, path: &str) -> Result<(), (StatusCode, &'static str)> {
    let rest = path.strip_prefix("/rate/").unwrap_or_default();
    let (key, id) = rest.split_once('/').unwrap_or((rest, ""));
    let bad = |what| (StatusCode::BAD_REQUEST, what);
    let key = key::read(key, (NO_KEY, app.serve.bounds.key)).map_err(bad)?;
    let id = key::read(id, (NO_ID, LONGEST_ID)).map_err(bad)?;
    app.rate.grants.give_back(&app.limiter, &key, &id).map_err(|not| match not {
        NotReturned::Again => (StatusCode::NOT_FOUND, "no live grant of this key has this id"),
        NotReturned::Full => (StatusCode::SERVICE_UNAVAILABLE, "too many grants were given back"),
    })
}

/// Seven numbers and what separates them.
const LONGEST_ID: usize = 128;
