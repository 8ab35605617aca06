use serde::Serialize;
use tollgate::Key;

use super::board::Board;
use super::history::Past;
use super::news::Item;
use super::upstreams::Upstream;
use crate::app::App;
use tollgate::Timestamp;
use tollgate::limiter::{Busiest, KeyStats, LimitStats, Limiter, Totals};
use tollgate::quota::Dimension;

/// What the page shows: the limiter at one moment. All times are milliseconds since the epoch.
#[derive(Debug, Serialize)]
pub(super) struct Snapshot {
    at: u64,
    started_at: u64,
    version: &'static str,
    /// What was answered since the limiter was made.
    totals: Counts,
    past: Past,
    /// The busiest keys, [`MOST`] at most, the busiest first.
    keys: Vec<KeySnapshot>,
    /// How many keys there are besides.
    others: usize,
    /// How many requests wait in all.
    waiting: usize,
    /// The newest first.
    news: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster>,
    upstreams: Vec<Upstream>,
}

#[derive(Debug, Serialize)]
struct Counts {
    granted: u64,
    denied: u64,
    waited: u64,
}

/// A key, as [`Limiter::stats`] has it.
#[derive(Debug, Serialize)]
struct KeySnapshot {
    key: String,
    waiting: usize,
    /// Until when it cools down, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    cooling_until: Option<u64>,
    limits: Vec<Limit>,
}

/// A limit of a key, as [`LimitStats`] has it.
#[derive(Debug, Serialize)]
struct Limit {
    dimension: String,
    limit: u64,
    /// The limit in the quota, where the key has less than that now.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<u64>,
    used: u64,
    held: u64,
    available: u64,
    /// The length of the window; absent of requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
    /// When nothing of it is used any more; absent where that has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh_at: Option<u64>,
}

/// The machines that share the limits, as far as this one knows.
#[derive(Debug, Serialize)]
struct Cluster {
    account: String,
    /// Whether the store answers.
    connected: bool,
    /// Those that live.
    members: u64,
    /// Decisions that were made without the store.
    degraded: u64,
}

impl Snapshot {
    pub(super) fn take(app: &App, board: &Board) -> Self {
        let limiter = &app.limiter;
        let (now, totals) = (limiter.now(), limiter.state().totals());
        let Busiest { keys, others, waiting, .. } = limiter.state().busiest(MOST);
        Self {
            at: millis(now.as_nanos()),
            started_at: millis(board.started_at.as_nanos()),
            version: env!("CARGO_PKG_VERSION"),
            totals: totals.into(),
            past: board.history.lock().past(),
            keys: keys.into_iter().map(|(key, stats)| KeySnapshot::new(key, stats, now)).collect(),
            others,
            waiting,
            news: board.news.latest(),
            cluster: Cluster::of(app, limiter),
            upstreams: board.upstreams.all(),
        }
    }
}

impl From<Totals> for Counts {
    fn from(Totals { granted, denied, waited, .. }: Totals) -> Self {
        Self { granted, denied, waited }
    }
}

impl KeySnapshot {
    fn new(key: Key, stats: KeyStats, now: Timestamp) -> Self {
        let KeyStats { limits, waiting, cooling_until, .. } = stats;
        let limits = limits.into_iter().map(|limit| Limit::new(limit, now)).collect();
        Self { key: key.into(), waiting, cooling_until: cooling_until.map(millis_up), limits }
    }
}

impl Limit {
    fn new(stats: LimitStats, now: Timestamp) -> Self {
        let LimitStats {
            dimension, limit, original, window, used, held, available, fresh_at, ..
        } = stats;
        let windowed = dimension != Dimension::Concurrency;
        Self {
            dimension: dimension.as_str().into(),
            limit,
            original: Some(original).filter(|&original| original != limit),
            used,
            held,
            available,
            window: windowed.then(|| millis(window.as_nanos())),
            fresh_at: (windowed && fresh_at > now && used > 0).then(|| millis_up(fresh_at)),
        }
    }
}

impl Cluster {
    fn of(app: &App, limiter: &Limiter) -> Option<Self> {
        let account = app.config.cluster.as_ref()?.account.clone();
        let status = limiter.state().backend_status().unwrap_or_default();
        let (connected, members, degraded) = (status.connected, status.members, status.degraded);
        Some(Self { account, connected, members, degraded })
    }
}

fn millis(nanos: u64) -> u64 {
    nanos / 1_000_000
}

fn millis_up(time: Timestamp) -> u64 {
    time.as_nanos().div_ceil(1_000_000)
}

/// How many keys are shown.
pub(super) const MOST: usize = 200;
