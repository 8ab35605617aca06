use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::port::Receiver;

/// Who listens to what.
#[derive(Default)]
pub(super) struct Topics {
    /// By subject, in the order of their first subscription; never fewer.
    all: Mutex<Vec<(Arc<str>, Vec<Receiver>)>>,
    received: AtomicU64,
}

impl Topics {
    pub(super) fn add(&self, subject: &str, receiver: Receiver) {
        let mut all = self.all.lock();
        match all.iter_mut().find(|(known, _)| **known == *subject) {
            Some((_, receivers)) => receivers.push(receiver),
            None => all.push((subject.into(), vec![receiver])),
        }
    }

    /// The subjects from a number on.
    #[cfg(any(feature = "redis", feature = "nats"))]
    pub(super) fn subjects(&self, from: usize) -> Vec<Arc<str>> {
        self.all.lock().iter().skip(from).map(|(subject, _)| Arc::clone(subject)).collect()
    }

    /// Calls who listens, under no lock: they may publish and subscribe.
    pub(super) fn deliver(&self, subject: &str, message: &[u8]) {
        self.received.fetch_add(1, Ordering::Relaxed);
        let receivers = self.with(subject, |receivers| receivers.clone()).unwrap_or_default();
        for receiver in receivers {
            // Who panics must not end the bus for all others.
            let heard = catch_unwind(AssertUnwindSafe(|| receiver(message)));
            if heard.is_err() {
                tracing::error!(subject, "a bus subscriber panicked; unsubscribed it");
            }
            if heard.map_or(true, |heard| heard.is_break()) {
                self.with(subject, |all| all.retain(|other| !Arc::ptr_eq(other, &receiver)));
            }
        }
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn with<T>(&self, subject: &str, act: impl FnOnce(&mut Vec<Receiver>) -> T) -> Option<T> {
        let mut all = self.all.lock();
        all.iter_mut().find(|(known, _)| **known == *subject).map(|(_, receivers)| act(receivers))
    }
}

impl fmt::Debug for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.lock();
        f.debug_map().entries(all.iter().map(|(subject, all)| (subject, all.len()))).finish()
    }
}
