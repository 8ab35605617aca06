use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde::Serialize;

use super::path_segment::{self, EMPTY_KEY};
use super::rate_key::RateKey;
use super::response_format::{JSON, TEXT, respond};
use crate::app::App;
use paceline::limiter::{KeyStats, LimitStats};
use paceline::quota::{Dimension, Limit};

/// Handles `GET /debug`: the active keys. The state of each key is read at its own time.
pub(super) async fn all(State(app): State<Arc<App>>) -> Response<Body> {
    let shared = Arc::clone(&app);
    let task = app.scan(move || {
        let instances = shared.limiter.state().stats().into_iter().filter_map(|(key, stats)| {
            let name = RateKey::name_of(&key)?;
            let instance = Instance::of(&shared, name, &key, &stats)?;
            Some((name.to_owned(), instance))
        });
        serde_json::to_vec(&AllInstances { instances: instances.collect() })
    });
    match task.await {
        Ok(Ok(json)) => respond(StatusCode::OK, JSON, json),
        _ => respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, ""),
    }
}

/// Handles `GET /debug/{key}`.
pub(super) async fn one(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let segment = request.uri().path().strip_prefix("/debug/").unwrap_or_default();
    let name = match path_segment::decode(segment, app.serve.bounds.key, EMPTY_KEY) {
        Ok(name) => name,
        Err(error) => return respond(StatusCode::BAD_REQUEST, TEXT, error),
    };
    let key = RateKey::named(&name);
    let key = key.as_str();
    let json = Instance::of(&app, &name, key, &app.limiter.stats(key))
        .and_then(|instance| serde_json::to_vec(&instance).ok());
    match json {
        Some(json) => respond(StatusCode::OK, JSON, json),
        None => respond(StatusCode::NOT_FOUND, TEXT, "Key not found"),
    }
}

/// GoCC's format of all keys.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct AllInstances {
    instances: BTreeMap<String, Instance>,
}

/// GoCC's format of a key.
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
    /// Returns the state of a key of this name; `None` if it is not active: never used, or idle for three windows,
    /// as in GoCC.
    fn of(app: &App, name: &str, key: &str, stats: &KeyStats) -> Option<Self> {
        let is_of_requests = |limit: &&LimitStats| {
            limit.dimension == Dimension::Requests && !limit.window.is_endless()
        };
        let of_requests = stats.limits.iter().find(is_of_requests);
        // A quota may have no limit on requests.
        let limit = of_requests.or(stats.limits.first())?;
        let (limits, now) = (app.rate.table().of(name, None, &app.limiter), app.limiter.now());
        let window = limit.window.as_nanos();
        // The limit is unused again one window after the last use.
        let idle_from = limit.fresh_at + 2 * limit.window.as_duration();
        if idle_from <= now && stats.waiting == 0 {
            return None;
        }
        // The `maxRequests` of a request does not change the limit of its key.
        let is_named =
            |own: &Limit| (own.dimension(), own.window()) == (&limit.dimension, limit.window);
        let named = app.limiter.quotas().of(key).limits().iter().any(is_named);
        let max_requests = if named { limit.limit } else { limits.max_requests.into() };
        Some(Self {
            key: name.to_owned(),
            config: Config {
                window_millis: window / NANOS_PER_MILLI,
                max_requests_per_window: max_requests,
                max_requests_in_queue: limits.max_in_queue.into(),
            },
            num_approved_this_window: limit.used,
            num_denied_this_window: app.rate.denied.of(name, now),
            num_waiting: stats.waiting,
            found: true,
        })
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;
