//! The parts shared by the buses with a remote server: a bounded queue, and the thread that drains
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Clock, SystemClock};
use paceline_limiter::seam::LatencyRecorder;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};

use super::bus::MessageHandler;
use super::error::BusError;
use super::status::BusStatus;
use super::subscriptions::Subscriptions;
use crate::cause::Cause;
use crate::worker::Worker;

/// The caller's side of a remote bus: a bounded queue to the thread that drives the connection.
#[derive(Debug)]
pub(super) struct RemoteBus {
    queue: mpsc::Sender<Message>,
    shared: Arc<Shared>,
    _worker: Worker,
}

/// The state that the driving thread works on.
#[derive(Debug)]
pub(super) struct BusDriver {
    pub(super) queue: mpsc::Receiver<Message>,
    pub(super) shared: Arc<Shared>,
}

/// A message to publish.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) subject: String,
    pub(super) body: Bytes,
}

/// State shared between the callers and the driving thread.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) subscriptions: Subscriptions,
    /// Notified when a subject may have been added.
    pub(super) subscribed: Notify,
    /// The connection state; `None` until the first attempt has ended.
    connected: watch::Sender<Option<bool>>,
    published: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    outages: AtomicU64,
    retries: AtomicU64,
    timeouts: AtomicU64,
    latency: LatencyRecorder,
    clock: SystemClock,
    /// The current outage, once its cause is known.
    outage: Mutex<Option<Outage>>,
}

/// A period in which the bus is unavailable.
#[derive(Debug)]
struct Outage {
    since: Timestamp,
    /// The failed attempts to connect before it.
    retries: u64,
}

impl RemoteBus {
    /// Starts a thread that drives the bus.
    pub(super) fn start<T>(name: &str, drive: impl FnOnce(BusDriver) -> T) -> Result<Self, BusError>
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
        let shared = Arc::<Shared>::default();
        let driver = BusDriver { queue, shared: Arc::clone(&shared) };
        let worker = Worker::start(name, drive(driver)).map_err(BusError::Thread)?;
        Ok(Self { queue: sender, shared, _worker: worker })
    }

    pub(super) fn publish(&self, subject: &str, message: &[u8]) {
        let message =
            Message { subject: subject.to_owned(), body: Bytes::copy_from_slice(message) };
        if self.queue.try_send(message).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn subscribe(&self, subject: &str, handler: MessageHandler) {
        self.shared.subscriptions.add(subject, handler);
        self.shared.subscribed.notify_one();
    }

    pub(super) fn status(&self) -> BusStatus {
        let shared = &*self.shared;
        let queued = self.queue.max_capacity() - self.queue.capacity();
        BusStatus {
            connected: *shared.connected.borrow() == Some(true),
            published: shared.published.load(Ordering::Relaxed),
            failed: shared.failed.load(Ordering::Relaxed),
            dropped: shared.dropped.load(Ordering::Relaxed),
            received: shared.subscriptions.received(),
            queued: u64::try_from(queued).unwrap_or(u64::MAX),
            outages: shared.outages.load(Ordering::Relaxed),
            retries: shared.retries.load(Ordering::Relaxed),
            timeouts: shared.timeouts.load(Ordering::Relaxed),
            latency: shared.latency.get(),
        }
    }
}

impl BusDriver {
    /// Drops all queued messages and counts them as failed: they would arrive too late.
    pub(super) fn discard_queued(&mut self) {
        while self.queue.try_recv().is_ok() {
            self.shared.count(false);
        }
    }
}

impl Shared {
    /// Runs the sending of a message, and counts its result. An error counts as a failure, `None` as a
    /// timeout.
    pub(super) async fn count_sending<T, E>(
        &self,
        sending: impl Future<Output = Option<Result<T, E>>>,
    ) -> Option<Result<T, E>> {
        let begin = self.clock.now();
        let result = sending.await;
        self.latency.record(self.clock.now() - begin);
        self.count(matches!(result, Some(Ok(_))));
        if result.is_none() {
            self.timeouts.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Counts a message as published or failed.
    fn count(&self, sent: bool) {
        let count = if sent { &self.published } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the bus is connected, and logs the end of an outage.
    pub(super) fn on_connected(&self) {
        let before = self.connected.send_replace(Some(true));
        let outage = self.outage.lock().take();
        match outage {
            Some(Outage { since, retries }) => {
                let millis = (self.clock.now() - since).as_millis();
                let retries = self.retries.load(Ordering::Relaxed) - retries;
                tracing::info!(millis, retries, "the bus is available again");
            }
            None if before != Some(true) => tracing::info!("bus connected"),
            None => {}
        }
    }

    /// Records a lost connection or a failed attempt to connect. The first failure with a known cause
    /// is logged.
    pub(super) fn on_unavailable(&self, cause: Option<&Cause>, server: &str) {
        let before = self.connected.send_replace(Some(false));
        if cause.is_some() {
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
        if before != Some(false) {
            self.outages.fetch_add(1, Ordering::Relaxed);
        }
        let mut outage = self.outage.lock();
        if let (None, Some(cause)) = (&*outage, cause) {
            let retries = self.retries.load(Ordering::Relaxed).saturating_sub(1);
            *outage = Some(Outage { since: self.clock.now(), retries });
            tracing::warn!(%cause, server, "the bus is unavailable; reconnecting");
        }
    }

    /// Waits until the bus is connected.
    #[cfg(feature = "nats")]
    pub(super) async fn connected(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.connected.subscribe().wait_for(|connected| *connected == Some(true)).await;
    }
}

/// Returns the pause before reconnect attempt `attempt`, which counts from 1: 10 ms, doubled with
/// each attempt, and at most 1 s.
pub(super) fn backoff(attempt: usize) -> Duration {
    let doubled = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(7);
    (MIN_BACKOFF * (1 << doubled)).min(TIMEOUT)
}

/// The timeout for connecting, sending and replies.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);

/// The interval at which an idle connection is pinged.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(1);

/// The capacity of the queue, in messages.
const QUEUE_CAPACITY: usize = 1_024;

const MIN_BACKOFF: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_from_10_ms_to_1_s() {
        let waits: Vec<_> = (0..9).map(|attempt| backoff(attempt).as_millis()).collect();
        assert_eq!(waits, [10, 10, 20, 40, 80, 160, 320, 640, 1_000]);
        assert_eq!(backoff(usize::MAX), TIMEOUT);
    }
}
