use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use compact_str::CompactString;
use smallvec::SmallVec;
use tokio::sync::broadcast;

use super::exchange::Exchange;
use super::limiter::Limiter;
use super::logged;
use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::{Mutex, RwLock};
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
    /// A request was charged in other dimensions than its key limits.
    ChargeMismatch {
        /// Whose.
        key: CompactString,
        /// The dimension that the charge names, though no limit of the key counts it; or, if `kept`,
        /// the one that it doesn't name.
        dimension: Dimension,
        /// Whether a limit counts the dimension and the request had reserved some of it: that was
        /// charged.
        kept: bool,
    },
    /// The provider refused a request: nothing is sent until then.
    CoolingDown {
        /// Whose.
        key: CompactString,
        /// Nanoseconds since the epoch.
        until: u64,
        /// Which other program said so, if one did.
        agent: Option<CompactString>,
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
    /// A request to a provider and its answer have ended: told by the layer, of what it read as HTTP.
    Exchanged(Box<Exchange>),
}

impl Limiter {
    /// What happens from now on. A subscriber that is more than 4,096 events behind loses the
    /// oldest; a [listener](Self::listen) loses none.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.core.events.subscribe()
    }

    /// Calls `listener` with every event from now on, for as long as there is the limiter: on the
    /// thread on which it happens and before that goes on, but under no lock. So it should be quick,
    /// and must not panic: a [`Permit`](super::Permit) that is dropped tells of it. It should hold no
    /// clone of the limiter, which would keep that for ever; a
    /// [`WeakLimiter`](super::WeakLimiter) does.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tollgate::{Cost, Limiter, Quota, limiter::Event};
    /// let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build()?;
    /// let denied = Arc::new(AtomicU64::new(0));
    /// let counter = Arc::clone(&denied);
    /// limiter.listen(move |event| {
    ///     if let Event::Denied { .. } = event {
    ///         counter.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// let admitted = (0..3).filter(|_| limiter.try_acquire("k", &Cost::new()).is_ok()).count();
    /// assert_eq!((admitted, denied.load(Ordering::Relaxed)), (1, 2));
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    pub fn listen(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.core.events.listen(Listener { all: true, hear: Arc::new(listener) });
    }

    /// The same for news alone: all events but those that each reservation makes
    /// ([`Granted`](Event::Granted), [`Denied`](Event::Denied), [`Waited`](Event::Waited) and
    /// [`Settled`](Event::Settled)). So it costs a reservation nothing; how many there were
    /// [`totals`](super::State::totals) says.
    #[doc(hidden)]
    pub fn listen_for_news(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.core.events.listen(Listener { all: false, hear: Arc::new(listener) });
    }

    /// Whether anybody may hear of news.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.core.events.has_ears()
    }

    /// Tells of what happened elsewhere.
    #[cfg(feature = "tower")]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        self.core.events.announce(event);
    }
}

impl Event {
    /// Whether it is other than what each reservation makes.
    fn is_news(&self) -> bool {
        !matches!(
            self,
            Self::Granted { .. } | Self::Denied { .. } | Self::Waited { .. } | Self::Settled { .. }
        )
    }
}

/// The channel of events and those who listen, which costs two loads while nobody does, and no
/// memory before anybody has.
#[derive(Debug, Default)]
pub(super) struct Events {
    sender: OnceLock<broadcast::Sender<Event>>,
    listeners: RwLock<Listeners>,
    watched: AtomicBool,
    /// Whether somebody listens for news alone.
    has_news_listeners: AtomicBool,
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

    fn listen(&self, listener: Listener) {
        let heard = if listener.all { &self.watched } else { &self.has_news_listeners };
        self.listeners.write().0.push(listener);
        heard.store(true, Ordering::Release);
    }

    /// Whether anybody may hear of news.
    #[inline]
    fn has_ears(&self) -> bool {
        self.watched.load(Ordering::Acquire) || self.has_news_listeners.load(Ordering::Acquire)
    }

    /// Whether anybody may be listening, or events are logged.
    #[inline]
    pub(super) fn are_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) || logged::is_on()
    }

    #[inline]
    pub(super) fn send(&self, event: impl FnOnce() -> Event) {
        if self.are_watched() {
            self.deliver(event());
        }
    }

    /// The same for what is rare, and worth a line of every log.
    #[cold]
    pub(super) fn announce(&self, event: impl FnOnce() -> Event) {
        if self.has_ears() || logged::is_on_for_news() {
            self.deliver(event());
        }
    }

    /// Keeps an announcement until somebody can tell it who has no lock.
    #[cold]
    pub(super) fn post(&self, event: impl FnOnce() -> Event) {
        if self.has_ears() || logged::is_on_for_news() {
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
        logged::log(&event);
        let listeners = self.listeners.read().0.clone();
        let hear = |listener: &&Listener| listener.all || event.is_news();
        listeners.iter().filter(hear).for_each(|listener| (listener.hear)(&event));
        let unheard = self.sender.get().is_none_or(|sender| sender.send(event).is_err());
        if unheard && !listeners.iter().any(|listener| listener.all) {
            self.watched.store(false, Ordering::Release);
            // Somebody may have come in between.
            if self.is_heard() {
                self.watched.store(true, Ordering::Release);
            }
        }
    }

    fn is_heard(&self) -> bool {
        let subscribed = self.sender.get().is_some_and(|sender| sender.receiver_count() > 0);
        subscribed || self.listeners.read().0.iter().any(|listener| listener.all)
    }
}

/// Those who hear of events; nearly always there is one at most.
#[derive(Default)]
struct Listeners(SmallVec<[Listener; 1]>);

#[derive(Clone)]
struct Listener {
    /// Or of news alone.
    all: bool,
    hear: Arc<dyn Fn(&Event) + Send + Sync>,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}

/// Events that a slow subscriber may be behind before it loses the oldest.
const CAPACITY: usize = 4_096;
