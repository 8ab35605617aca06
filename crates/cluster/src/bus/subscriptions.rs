use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::bus::MessageHandler;

/// The message handlers of a bus, by subject.
#[derive(Default)]
pub(super) struct Subscriptions {
    /// Subjects in the order of their first subscription; subjects are never removed.
    all: Mutex<Vec<(Arc<str>, Vec<MessageHandler>)>>,
    received: AtomicU64,
}

impl Subscriptions {
    pub(super) fn add(&self, subject: &str, handler: MessageHandler) {
        let mut all = self.all.lock();
        match all.iter_mut().find(|(known, _)| **known == *subject) {
            Some((_, handlers)) => handlers.push(handler),
            None => all.push((subject.into(), vec![handler])),
        }
    }

    /// Returns the subjects from index `from` on.
    #[cfg(any(feature = "redis", feature = "nats"))]
    pub(super) fn subjects(&self, from: usize) -> Vec<Arc<str>> {
        self.all.lock().iter().skip(from).map(|(subject, _)| Arc::clone(subject)).collect()
    }

    /// Calls the handlers of a subject without holding the lock, since handlers may publish and
    /// subscribe.
    pub(super) fn deliver(&self, subject: &str, message: &[u8]) {
        self.received.fetch_add(1, Ordering::Relaxed);
        let handlers = self.with(subject, |handlers| handlers.clone()).unwrap_or_default();
        for handler in handlers {
            // A panicking handler must not stop the bus for the other handlers.
            let result = catch_unwind(AssertUnwindSafe(|| handler(message)));
            if result.is_err() {
                tracing::error!(subject, "a bus subscriber panicked; unsubscribed it");
            }
            if result.map_or(true, |result| result.is_break()) {
                self.with(subject, |all| all.retain(|other| !Arc::ptr_eq(other, &handler)));
            }
        }
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn with<T>(&self, subject: &str, act: impl FnOnce(&mut Vec<MessageHandler>) -> T) -> Option<T> {
        let mut all = self.all.lock();
        all.iter_mut().find(|(known, _)| **known == *subject).map(|(_, handlers)| act(handlers))
    }
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.lock();
        f.debug_map().entries(all.iter().map(|(subject, all)| (subject, all.len()))).finish()
    }
}
