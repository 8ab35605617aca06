use std::sync::Arc;

use axum::body::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::history::History;
use super::news::News;
use super::upstreams::Upstreams;
use crate::app::App;
use tollgate::Timestamp;
use tollgate::limiter::{Event, Limiter, Totals};

/// What the page shows, and who looks at it.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) started_at: Timestamp,
    pub(super) history: Mutex<History>,
    pub(super) news: Arc<News>,
    pub(super) upstreams: Arc<Upstreams>,
    /// The last snapshot as an event, while somebody looks.
    pub(super) shown: watch::Sender<Option<Bytes>>,
    /// Somebody has come to look whom there is nothing to show.
    pub(super) wanted: Notify,
    pub(super) seats: Arc<Semaphore>,
    pub(super) stopping: CancellationToken,
    last: Mutex<Totals>,
}

impl Board {
    pub(super) fn new(app: &App) -> Self {
        let (started_at, totals) = (app.limiter.now(), app.limiter.state().totals());
        let (news, upstreams) = (Arc::<News>::default(), Arc::<Upstreams>::default());
        listen(&app.limiter, Arc::clone(&news), Arc::clone(&upstreams));
        Self {
            started_at,
            history: Mutex::new(History::new(started_at, totals)),
            news,
            upstreams,
            shown: watch::Sender::new(None),
            wanted: Notify::new(),
            seats: Arc::new(Semaphore::new(SEATS)),
            stopping: app.stopping.clone(),
            last: Mutex::new(totals),
        }
    }

    /// Looks at what was answered since the last time.
    pub(super) fn look(&self, limiter: &Limiter, now: Timestamp) {
        let totals = limiter.state().totals();
        self.history.lock().see(now, totals);
        if let Some((key, dimension)) = limiter.state().sample_denied() {
            let last = std::mem::replace(&mut *self.last.lock(), totals);
            let denied = totals.denied.saturating_sub(last.denied);
            self.news.denied(now, &key, dimension.as_ref(), denied);
        } else {
            *self.last.lock() = totals;
        }
    }

    /// Whether anybody looks.
    pub(super) fn is_watched(&self) -> bool {
        self.shown.receiver_count() > 0
    }
}

fn listen(limiter: &Limiter, news: Arc<News>, upstreams: Arc<Upstreams>) {
    let clock = limiter.downgrade();
    limiter.on_change(move |event| match event {
        Event::Exchanged(exchange) => upstreams.hear(exchange),
        event => news.hear(event, clock.now()),
    });
}

/// How many may look at a time.
pub(super) const SEATS: usize = 100;
