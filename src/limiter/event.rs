use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use compact_str::CompactString;
use tokio::sync::broadcast;

use crate::quota::{Cost, Dimension, Quota};

/// Something that happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A reservation was granted.
    Granted {
        /// Whose.
        key: CompactString,
        /// What it takes.
        cost: Cost,
    },
    /// A reservation was refused.
    Denied {
        /// Whose.
        key: CompactString,
        /// The dimension that fell short; `None` where none did (others wait, a cool-down).
        dimension: Option<Dimension>,
    },
    /// A request waited in the queue and was granted its reservation.
    Waited {
        /// Whose.
        key: CompactString,
        /// From its arrival to its grant.
        duration: Duration,
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
    /// A key or glob has another quota.
    QuotaChanged {
        /// The key or glob.
        key: CompactString,
        /// Its quota now.
        quota: Quota,
    },
}

/// The channel of events, which costs one load while nobody listens.
#[derive(Debug)]
pub(super) struct Events {
    sender: broadcast::Sender<Event>,
    watched: AtomicBool,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { sender: broadcast::Sender::new(CAPACITY), watched: AtomicBool::new(false) }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Event> {
        let receiver = self.sender.subscribe();
        self.watched.store(true, Ordering::Release);
        receiver
    }

    #[inline]
    pub(super) fn send(&self, event: impl FnOnce() -> Event) {
        if self.watched.load(Ordering::Acquire) {
            self.deliver(event());
        }
    }

    #[cold]
    fn deliver(&self, event: Event) {
        if self.sender.send(event).is_err() {
            self.watched.store(false, Ordering::Release);
            // Somebody may have subscribed in between.
            if self.sender.receiver_count() > 0 {
                self.watched.store(true, Ordering::Release);
            }
        }
    }
}

/// Events that a slow subscriber may be behind before it loses the oldest.
const CAPACITY: usize = 4_096;
