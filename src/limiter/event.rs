use std::sync::{Arc, OnceLock};
use std::time::Duration;

use compact_str::CompactString;
use tokio::sync::broadcast;

use super::sync::Mutex;
use super::sync::atomic::{AtomicBool, Ordering};
use crate::quota::{Cost, Dimension, Quota};

/// Names and values that a request brings along for its events; nothing secret belongs in here.
pub type Metadata = Arc<[(String, String)]>;

/// Something that happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A reservation was granted: one event for each of its keys.
    Granted {
        /// Whose.
        key: CompactString,
        /// What it takes.
        cost: Cost,
        /// What the request brought along for its events.
        metadata: Option<Metadata>,
    },
    /// A reservation was refused.
    Denied {
        /// Whose.
        key: CompactString,
        /// The dimension that fell short; `None` where none did (others wait, a cool-down).
        dimension: Option<Dimension>,
        /// What the request brought along for its events.
        metadata: Option<Metadata>,
    },
    /// A request waited in the queue and was granted its reservation.
    Waited {
        /// Whose.
        key: CompactString,
        /// From its arrival to its grant.
        duration: Duration,
        /// What the request brought along for its events.
        metadata: Option<Metadata>,
    },
    /// A reservation ended.
    Settled {
        /// Whose.
        key: CompactString,
        /// What it had reserved.
        reserved: Cost,
        /// What it took; `None` if the request never left.
        charged: Option<Cost>,
    },
    /// The provider refused a request: nothing is sent until then.
    CoolingDown {
        /// Whose.
        key: CompactString,
        /// Nanoseconds since the epoch.
        until: u64,
    },
    /// A key has less than its quota, after a refusal or because somebody said so.
    Reduced {
        /// Whose buckets: of keys that share them the name of what they share.
        key: CompactString,
        /// What is left of its capacity: of its first limit per less than a day, or else of requests
        /// in flight.
        capacity: u64,
        /// Why.
        reason: CompactString,
        /// Which other program said so, if one did.
        agent: Option<CompactString>,
    },
    /// A key that was reduced has its whole quota again. Told when the key is next used.
    Recovered {
        /// Whose buckets.
        key: CompactString,
        /// Its capacity, as in [`Reduced`](Self::Reduced).
        capacity: u64,
    },
    /// A key or glob has another quota.
    QuotaChanged {
        /// The key or glob.
        key: CompactString,
        /// Its quota now.
        quota: Quota,
    },
}

/// The channel of events, which costs one load while nobody listens, and no memory before anybody
/// has.
#[derive(Debug, Default)]
pub(super) struct Events {
    sender: OnceLock<broadcast::Sender<Event>>,
    watched: AtomicBool,
    /// What happened under a lock, to be told without it: whoever is woken may do anything.
    posted: Mutex<Vec<Event>>,
    is_posted: AtomicBool,
}

impl Events {
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Event> {
        let receiver = self.sender.get_or_init(|| broadcast::Sender::new(CAPACITY)).subscribe();
        self.watched.store(true, Ordering::Release);
        receiver
    }

    /// Whether anybody may be listening.
    #[inline]
    pub(super) fn are_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn send(&self, event: impl FnOnce() -> Event) {
        if self.are_watched() {
            self.deliver(event());
        }
    }

    /// Keeps an event until somebody can tell it who has no lock.
    #[cold]
    pub(super) fn post(&self, event: impl FnOnce() -> Event) {
        if self.are_watched() {
            self.posted.lock().push(event());
            self.is_posted.store(true, Ordering::Release);
        }
    }

    /// Tells what was kept. Without a lock.
    #[inline]
    pub(super) fn flush(&self) {
        if self.is_posted.load(Ordering::Acquire) {
            self.deliver_posted();
        }
    }

    #[cold]
    fn deliver_posted(&self) {
        self.is_posted.store(false, Ordering::Release);
        let posted = std::mem::take(&mut *self.posted.lock());
        posted.into_iter().for_each(|event| self.deliver(event));
    }

    #[cold]
    fn deliver(&self, event: Event) {
        let Some(sender) = self.sender.get() else { return };
        if sender.send(event).is_err() {
            self.watched.store(false, Ordering::Release);
            // Somebody may have subscribed in between.
            if sender.receiver_count() > 0 {
                self.watched.store(true, Ordering::Release);
            }
        }
    }
}

/// Events that a slow subscriber may be behind before it loses the oldest.
const CAPACITY: usize = 4_096;
