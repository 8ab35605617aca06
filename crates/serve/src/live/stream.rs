use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::page::SAFE;
use crate::problem::Problem;

/// Snapshots as server-sent events, one a second, until the server stops. Whoever is slow is shown the
/// latest, and not what came between.
pub(super) async fn events(State(board): State<Arc<Board>>) -> Response {
    let Ok(seat) = Arc::clone(&board.seats).try_acquire_owned() else {
        let detail = "too many look at the live page already; close one, or come back later";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Problem::new(status, "too_many_watchers", detail).retry_after(5).into_response();
    };
    let mut shown = board.shown.subscribe();
    let is_there = shown.borrow().is_some();
    match is_there {
        true => shown.mark_changed(),
        false => board.wanted.notify_one(),
    }
    let watcher = Watcher { shown, stopping: board.stopping.clone(), _seat: seat };
    let events = futures_util::stream::unfold(watcher, async |mut watcher| {
        let event = watcher.next().await?;
        Some((Ok::<Bytes, Infallible>(event), watcher))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    (headers, SAFE, Body::from_stream(events)).into_response()
}

/// Somebody who looks at the page.
struct Watcher {
    shown: watch::Receiver<Option<Bytes>>,
    stopping: CancellationToken,
    _seat: OwnedSemaphorePermit,
}

impl Watcher {
    /// What comes next; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return None,
                changed = self.shown.changed() => changed.ok()?,
            }
            if let Some(event) = self.shown.borrow_and_update().clone() {
                return Some(event);
            }
        }
    }
}
