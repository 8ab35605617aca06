use std::sync::atomic::{AtomicU64, Ordering};

use super::bus::{Bus, MessageHandler};
use super::status::BusStatus;
use super::subscriptions::Subscriptions;

/// A bus within one process, for tests and for programs with several limiters.
///
/// [`publish`](Bus::publish) delivers a message on the calling thread, before it returns.
#[derive(Debug, Default)]
pub struct LocalBus {
    subscriptions: Subscriptions,
    published: AtomicU64,
}

impl LocalBus {
    /// Creates a bus without subscribers.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Bus for LocalBus {
    fn publish(&self, subject: &str, message: &[u8]) {
        self.published.fetch_add(1, Ordering::Relaxed);
        self.subscriptions.deliver(subject, message);
    }

    fn subscribe(&self, subject: &str, handler: MessageHandler) {
        self.subscriptions.add(subject, handler);
    }

    fn status(&self) -> BusStatus {
        let (published, received) =
            (self.published.load(Ordering::Relaxed), self.subscriptions.received());
        BusStatus { connected: true, published, received, ..BusStatus::default() }
    }
}
