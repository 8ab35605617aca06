use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::live_state::LiveState;
use super::page::SECURITY_HEADERS;
use crate::budget::BudgetPermit;
use crate::client_address::ClientAddress;
use crate::problem::Problem;

/// Handles `GET /live/events`: snapshots as server-sent events, one per second, until the server stops.
/// A slow client receives the latest snapshot and skips those in between.
pub(super) async fn get(State(state): State<Arc<LiveState>>, client: ClientAddress) -> Response {
    let Ok(permit) = state.clients.share(client).take(1) else {
        let detail = "too many clients of the live page; close one, or retry later";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Problem::new(status, "too_many_watchers", detail).retry_after(5).into_response();
    };
    let mut snapshots = state.snapshot.subscribe();
    let has_snapshot = snapshots.borrow().is_some();
    match has_snapshot {
        true => snapshots.mark_changed(),
        false => state.snapshot_wanted.notify_one(),
    }
    let subscriber = Subscriber { snapshots, stopping: state.stopping.clone(), _permit: permit };
    let events = futures_util::stream::unfold(subscriber, async |mut subscriber| {
        let event = subscriber.next().await?;
        Some((Ok::<Bytes, Infallible>(event), subscriber))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    (headers, SECURITY_HEADERS, Body::from_stream(events)).into_response()
}

/// A client of the event stream.
struct Subscriber {
    snapshots: watch::Receiver<Option<Bytes>>,
    stopping: CancellationToken,
    _permit: BudgetPermit,
}

impl Subscriber {
    /// Returns the next event, or `None` when the server stops.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return None,
                changed = self.snapshots.changed() => changed.ok()?,
            }
            if let Some(event) = self.snapshots.borrow_and_update().clone() {
                return Some(event);
            }
        }
    }
}
