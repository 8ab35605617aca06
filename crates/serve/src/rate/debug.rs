use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde::Serialize;

use super::answer::{JSON, TEXT, answer};
use super::key::{self, NO_KEY};
use crate::app::App;
use tollgate::limiter::KeyStats;
use tollgate::quota::{Dimension, Limit};

/// `GET /debug`: all keys in use, looked at one part after the other.
pub(super) async fn all(State(app): State<Arc<App>>) -> Response<Body> {
    let shared = Arc::clone(&app);
    let looking = app.survey(move || {
        let instances = shared.limiter.state().stats().into_iter().filter_map(|(key, stats)| {
            let instance = Instance::of(&shared, &key, &stats)?;
            Some((key.into(), instance))
        });
        serde_json::to_vec(&All { instances: instances.collect() })
    });
    match looking.await {
        Ok(Ok(json)) => answer(StatusCode::OK, JSON, json),
        _ => answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, ""),
    }
}

/// `GET /debug/{key}`.
pub(super) async fn one(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let segment = request.uri().path().strip_prefix("/debug/").unwrap_or_default();
    let key = match key::read(segment, (NO_KEY, app.serve.bounds.key)) {
        Ok(key) => key,
        Err(what) => return answer(StatusCode::BAD_REQUEST, TEXT, what),
    };
    let json = Instance::of(&app, &key, &app.limiter.stats(&key))
        .and_then(|instance| serde_json::to_vec(&instance).ok());
    match json {
        Some(json) => answer(StatusCode::OK, JSON, json),
        None => answer(StatusCode::NOT_FOUND, TEXT, "Key not found"),
    }
}

/// What GoCC tells of all keys.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct All {
    instances: BTreeMap<String, Instance>,
}

/// What GoCC tells of a key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Instance {
    key: String,
    config: Config,
    num_approved_this_window: u64,
    num_denied_this_window: u64,
    num_waiting: usize,
    found: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    window_millis: u64,
    max_requests_per_window: u64,
    max_requests_in_queue: u64,
}

impl Instance {
    /// What is told of a key with these figures; `None` if it isn't in use: it was idle for three
    /// windows, as in GoCC, or was never asked for.
    fn of(app: &App, key: &str, stats: &KeyStats) -> Option<Self> {
        let of_requests = stats.limits.iter().find(|limit| limit.dimension == Dimension::Requests);
        // A quota may limit something else alone.
        let limit = of_requests.or(stats.limits.first())?;
        let (limits, now) = (app.rate.table().of((key, None), &app.limiter), app.limiter.now());
        let window = limit.window.as_nanos();
        // What was used last is all unused again by the end of its window.
        let idle_from = limit.fresh_at + 2 * limit.window.as_duration();
        if idle_from <= now && stats.waiting == 0 {
            return None;
        }
        // A request that brings its own number doesn't change that of the key.
        let is_named =
            |own: &Limit| (own.dimension(), own.window()) == (&limit.dimension, limit.window);
        let named = app.limiter.quotas().of(key).limits().iter().any(is_named);
        let most = if named { limit.limit } else { limits.max_requests.into() };
        Some(Self {
            key: key.into(),
            config: Config {
                window_millis: window / NANOS_PER_MILLI,
                max_requests_per_window: most,
                max_requests_in_queue: limits.max_in_queue.into(),
            },
            num_approved_this_window: limit.used,
            num_denied_this_window: app.rate.denied.of(key, now),
            num_waiting: stats.waiting,
            found: true,
        })
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;
