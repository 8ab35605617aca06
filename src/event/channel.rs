use std::fmt;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tokio::sync::broadcast;

use super::event::Event;
use super::log;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, RwLock};

/// The channel of events and those who listen, which costs two loads while nobody does, and no
/// memory before anybody has.
#[derive(Debug, Default)]
pub(crate) struct Events {
    sender: OnceLock<broadcast::Sender<Event>>,
    listeners: RwLock<Listeners>,
    watched: AtomicBool,
    /// There is a listener for news alone.
    has_news_listeners: AtomicBool,
    /// Events under a lock, to be delivered without it: a listener may do anything.
    posted: Mutex<Vec<Event>>,
    is_posted: AtomicBool,
}

impl Events {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        let receiver = self.sender.get_or_init(|| broadcast::Sender::new(CAPACITY)).subscribe();
        self.watched.store(true, Ordering::Release);
        receiver
    }

    pub(crate) fn listen(&self, listener: Listener) {
        let heard = if listener.all { &self.watched } else { &self.has_news_listeners };
        self.listeners.write().0.push(listener);
        heard.store(true, Ordering::Release);
    }

    /// Returns whether there may be a subscriber to news.
    #[inline]
    pub(crate) fn has_subscribers(&self) -> bool {
        self.watched.load(Ordering::Acquire) || self.has_news_listeners.load(Ordering::Acquire)
    }

    /// Returns whether there may be a subscriber, or events are logged.
    #[inline]
    pub(crate) fn are_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) || log::is_on()
    }

    #[inline]
    pub(crate) fn send(&self, event: impl FnOnce() -> Event) {
        if self.are_watched() {
            self.deliver(event());
        }
    }

    /// The same for what is rare, and worth a line of every log.
    #[cold]
    pub(crate) fn announce(&self, event: impl FnOnce() -> Event) {
        if self.has_subscribers() || log::is_on_for_news() {
            self.deliver(event());
        }
    }

    /// Keeps an announcement until somebody can tell it who has no lock.
    #[cold]
    pub(crate) fn post(&self, event: impl FnOnce() -> Event) {
        if self.has_subscribers() || log::is_on_for_news() {
            self.posted.lock().push(event());
            self.is_posted.store(true, Ordering::Release);
        }
    }

    /// Tells what was kept. Without a lock.
    #[inline]
    pub(crate) fn flush(&self) {
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
        log::log(&event);
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
pub(crate) struct Listener {
    /// Or of news alone.
    pub(crate) all: bool,
    pub(crate) hear: Arc<dyn Fn(&Event) + Send + Sync>,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}

/// Events that a slow subscriber may be behind before it loses the oldest.
const CAPACITY: usize = 4_096;
