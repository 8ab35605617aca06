use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The number of requests of one layer that wait after their call.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingCount(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    requests: AtomicUsize,
    ended: Arc<Notify>,
}

/// A request that counts as waiting until this is dropped.
#[derive(Debug)]
pub(super) struct WaitingRequest(Arc<Shared>);

/// A wait in `poll_ready` until fewer requests wait.
pub(super) type EndOfWait = Pin<Box<OwnedNotified>>;

impl WaitingCount {
    /// Counts a request.
    pub(super) fn enter(&self) -> WaitingRequest {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        WaitingRequest(Arc::clone(&self.0))
    }

    /// Polls until fewer than `max` requests wait, or none. `wait` keeps the place among other pollers.
    pub(super) fn poll_below(
        &self,
        max: usize,
        wait: &mut Option<EndOfWait>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let is_below = || self.0.requests.load(Ordering::Relaxed) < max.max(1);
        while !is_below() {
            let ended = || Box::pin(Arc::clone(&self.0.ended).notified_owned());
            if wait.get_or_insert_with(ended).as_mut().poll(cx).is_ready() {
                *wait = None;
            } else if !is_below() {
                return Poll::Pending;
            }
        }
        *wait = None;
        Poll::Ready(())
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.0.ended.notify_one();
    }
}
