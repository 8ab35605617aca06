use std::sync::Arc;

use axum::body::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::history::History;
use super::provider_traffic::ProviderTraffic;
use super::recent_events::RecentEvents;
use crate::app::App;
use crate::budget::Budget;
use paceline::Timestamp;
use paceline::limiter::{Event, Limiter, Totals};
use paceline_limiter::seam;

/// The state of the live page and its clients.
#[derive(Debug)]
pub(super) struct LiveState {
    pub(super) started_at: Timestamp,
    pub(super) history: Mutex<History>,
    pub(super) events: Arc<RecentEvents>,
    pub(super) providers: Arc<ProviderTraffic>,
    /// The last snapshot as an event, while clients are connected.
    pub(super) snapshot: watch::Sender<Option<Bytes>>,
    /// Notified when a client connects and there is no snapshot.
    pub(super) snapshot_wanted: Notify,
    pub(super) clients: Arc<Budget>,
    pub(super) stopping: CancellationToken,
    last: Mutex<Totals>,
}

impl LiveState {
    pub(super) fn new(app: &App) -> Self {
        let (started_at, totals) = (app.limiter.now(), app.limiter.state().totals());
        let (events, providers) =
            (Arc::<RecentEvents>::default(), Arc::<ProviderTraffic>::default());
        subscribe(&app.limiter, Arc::clone(&events), Arc::clone(&providers));
        Self {
            started_at,
            history: Mutex::new(History::new(started_at, totals)),
            events,
            providers,
            snapshot: watch::Sender::new(None),
            snapshot_wanted: Notify::new(),
            clients: Budget::new(MAX_CLIENTS),
            stopping: app.stopping.clone(),
            last: Mutex::new(totals),
        }
    }

    /// Records the decisions since the last call.
    pub(super) fn observe(&self, limiter: &Limiter, now: Timestamp) {
        let totals = limiter.state().totals();
        self.history.lock().record(now, totals);
        if let Some(sample) = seam::sample_denied(limiter) {
            let last = std::mem::replace(&mut *self.last.lock(), totals);
            let denied = totals.denied.saturating_sub(last.denied);
            self.events.record_denied(now, &sample, denied);
        } else {
            *self.last.lock() = totals;
        }
    }

    /// Returns true if clients are connected.
    pub(super) fn has_clients(&self) -> bool {
        self.snapshot.receiver_count() > 0
    }
}

fn subscribe(limiter: &Limiter, events: Arc<RecentEvents>, providers: Arc<ProviderTraffic>) {
    let clock = limiter.downgrade();
    seam::on_change(limiter, move |event| match event {
        Event::Exchanged(exchange) => providers.record(exchange),
        event => events.record(event, clock.now()),
    });
}

/// The maximum number of streams of events, half of which one client can have.
const MAX_CLIENTS: usize = 200;
