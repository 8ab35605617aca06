mod latency;
mod measurement;

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI8, AtomicU64};
use std::time::Duration;

pub use latency::Latency;
pub use latency::LatencyRecorder;
pub use measurement::{Measured, Measurement};

use crate::engine::{Level, Rule, Shortfall, Wait};
use crate::quota::{Cost, Key};
use crate::timestamp::Timestamp;

/// The future of [`Backend::reserve`].
pub type Reserving = Pin<Box<dyn Future<Output = Result<(), ReserveError>> + Send>>;

/// The future of [`Backend::recheck`].
pub type Rechecking = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The future of [`Backend::refresh`].
pub type Refreshing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The future of [`Backend::reset`]: `true` if the backend has confirmed it.
pub type Resetting = Pin<Box<dyn Future<Output = bool> + Send>>;

/// The future of [`Backend::close`].
pub type Closing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A store outside of this process that keeps the buckets, so that several processes share them.
///
/// The queue stays in the process: its first request asks the backend, and others ask ahead of their turns
/// as far as [`max_ahead`](Self::max_ahead) allows. A limiter without a backend keeps its buckets itself.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Reserves in all buckets of all keys or in none.
    ///
    /// A refusal should state [`Wait::At`]: after [`Wait::Unknown`] the request asks again only when a
    /// permit of this process ends, or after [`recheck`](Self::recheck).
    ///
    /// # Cancel safety
    /// The operation of a dropped future may have been carried out. The limiter then calls [`end`](Self::end) with
    /// [`Ending::Released`], which must undo the reservation if there is one. A request that isn't polled gives its
    /// reservation back in this way while its future still exists; the future isn't polled after that.
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving;

    /// Reserves as [`reserve`](Self::reserve) does, for a request that the backend needn't keep a place for
    /// if it refuses: it doesn't wait, or it asks ahead of its turn and is repeated when that comes.
    fn reserve_once(&self, reservation: &Arc<Reservation>) -> Reserving {
        self.reserve(reservation)
    }

    /// Returns a future that is ready when a request that waits after a refusal of [`reserve`](Self::reserve)
    /// should ask again, although the time of its refusal has not come: another process has returned an
    /// amount, or the backend has to know that it still waits. It is awaited only while it is the turn of the
    /// request. With `None`, the default, the request asks again at the time of its refusal, or when its keys
    /// change in this process.
    fn recheck(&self, _reservation: &Arc<Reservation>) -> Option<Rechecking> {
        None
    }

    /// Returns the number of requests that may ask at the same time beside the first ones of their queues,
    /// over all keys. A backend that allows any has to decide in the order of the calls.
    fn max_ahead(&self, _reservation: &Reservation) -> usize {
        0
    }

    /// Reserves from capacity that was fetched in advance. `None` means that [`reserve`](Self::reserve)
    /// has to be called. Must not block.
    fn reserve_here(&self, _reservation: &Arc<Reservation>) -> Option<Result<(), ReserveError>> {
        None
    }

    /// Reserves as [`reserve`](Self::reserve) does, for callers that cannot await. May block the thread
    /// for up to [`patience`](Self::patience), and refuses if there is no answer by then.
    ///
    /// # Errors
    /// The same as [`reserve`](Self::reserve).
    fn try_reserve(&self, reservation: &Arc<Reservation>) -> Result<(), ReserveError>;

    /// Returns the longest time that an answer takes. A request whose deadline has passed is still sent to
    /// the backend, and waits this long for the answer.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Ends a reservation, or a refused request for one that is known not to be repeated. Must not block:
    /// slow work belongs in a separate task.
    ///
    /// It may come before [`reserve`](Self::reserve) has answered, while the future of that still exists, which is then
    /// dropped without another poll: what that call has reserved or will reserve is released.
    fn end(&self, reservation: &Arc<Reservation>, ending: Ending);

    /// Charges the cost to the buckets even if it doesn't fit, for a request that bypassed the limiter.
    /// Must not block.
    fn charge(&self, reservation: &Arc<Reservation>);

    /// Resets the usage of a key. Must not block.
    fn reset(&self, key: &str);

    /// Resets the usage of a key as [`reset`](Self::reset) does, and waits for up to
    /// [`patience`](Self::patience) until that is confirmed. Dropping the future doesn't undo it.
    fn reset_confirmed(&self, key: &str) -> Resetting {
        self.reset(key);
        Box::pin(std::future::ready(false))
    }

    /// Asks for the current state of the keys of a reservation, for up to [`patience`](Self::patience), so
    /// that [`levels`](Self::levels) returns it.
    fn refresh(&self, _reservation: &Arc<Reservation>) -> Refreshing {
        Box::pin(std::future::ready(()))
    }

    /// Returns the time, by the limiter's clock, of the state from which [`levels`](Self::levels) are
    /// computed. Must not block, and must not call the limiter, which holds a lock.
    fn known_at(&self, _key: &str) -> Option<Timestamp> {
        None
    }

    /// Returns the last known levels of the buckets of a key, one for each of its rules; `None` if none
    /// are known. Must not block, and must not call the limiter, which holds a lock.
    fn levels(&self, _key: &str, _rules: &[Rule]) -> Option<Vec<Level>> {
        None
    }

    /// Returns the status for operators. Must not block.
    fn status(&self) -> Option<BackendStatus> {
        None
    }

    /// Returns values for the metrics. Must not block.
    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }

    /// Shuts down when the limiter is closed: returns capacity that was fetched in advance, and flushes
    /// pending writes.
    fn close(&self) -> Closing {
        Box::pin(std::future::ready(()))
    }
}

/// The status of a [`Backend`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendStatus {
    /// `true` if the backend is reachable.
    pub connected: bool,
    /// The last known number of processes that share the backend, including this one.
    pub members: u64,
    /// The number of decisions made without the backend while it was unreachable.
    pub degraded: u64,
    /// `true` if requests can be admitted while the backend is unreachable.
    pub admits_alone: bool,
}

/// A reservation that a [`Backend`] decides about. All calls for one request get the same value, unless
/// a quota changes in between.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reservation {
    /// The keys to reserve under: all of them or none.
    pub scopes: Box<[Reserved]>,
    /// The amounts to reserve under each key, of which some keys count a [`part`](Reserved::part).
    pub cost: Cost,
    pub(crate) precedence: Precedence,
}

/// The order of a request among those that wait.
#[derive(Debug, Default)]
pub struct Precedence {
    /// The priority, or a higher one of requests that wait behind it.
    pub priority: AtomicI8,
    /// The flow, if it has one.
    pub flow: Option<Key>,
    /// The weight of the flow.
    pub weight: u32,
    /// The time after which a lower priority has a turn.
    pub max_starvation: Duration,
}

impl Reservation {
    /// Returns one that takes nothing of these keys.
    pub(crate) fn without_amounts(keys: impl IntoIterator<Item = (Key, Arc<[Rule]>)>) -> Arc<Self> {
        let reserved =
            |(key, rules)| Reserved { key, rules, is_spending_key: false, note: AtomicU64::new(0) };
        let scopes = keys.into_iter().map(reserved).collect();
        Arc::new(Self::without_turn(scopes, Cost::new().requests(0)))
    }

    /// Returns one that doesn't wait for a turn.
    pub(crate) fn without_turn(scopes: Box<[Reserved]>, cost: Cost) -> Self {
        Self { scopes, cost, precedence: Precedence::default() }
    }
}

/// One key of a [`Reservation`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Reserved {
    /// The key.
    pub key: Key,
    /// The rules of the key, with one bucket each.
    pub rules: Arc<[Rule]>,
    /// `true` if the request counts to the key's limits on spending alone.
    pub(crate) is_spending_key: bool,
    /// A value that the backend keeps until the reservation ends; initially 0.
    pub(crate) note: AtomicU64,
}

impl Reserved {
    /// Returns the part of a cost that counts under the key: all of it, or the money alone if the key is the model of a
    /// request in a mode that has other limits of its own.
    pub fn part<'c>(&self, cost: &'c Cost) -> Cow<'c, Cost> {
        if self.is_spending_key { Cow::Owned(cost.money()) } else { Cow::Borrowed(cost) }
    }
}

/// The error of a reservation that a [`Backend`] refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveError {
    /// A bucket is short.
    Short {
        /// The index of the bucket's key in the [`Reservation`].
        scope: usize,
        /// The index of the rule of that key, and the time at which the request fits.
        shortfall: Shortfall,
        /// The time before which the key can't admit the request at its present limits, even if all that is held came
        /// back and no request that waits took any; `None` if that is unknown. A request whose deadline is earlier fails
        /// at once.
        earliest: Option<Timestamp>,
    },
    /// An unknown bucket is short.
    Full(Wait),
    /// The backend is unreachable.
    Away {
        /// The time of the next attempt.
        until: Timestamp,
    },
}

impl ReserveError {
    /// Returns the time at which to ask again.
    pub fn wait(&self) -> Wait {
        match *self {
            Self::Short { shortfall, .. } => shortfall.wait,
            Self::Full(wait) => wait,
            Self::Away { until } => Wait::At(until),
        }
    }

    /// Returns the time at which to ask again, if it is known.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        match self.wait() {
            Wait::At(time) => Some(time),
            Wait::Unknown | Wait::Never => None,
        }
    }
}

/// The end of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The request was sent and is charged this cost.
    Settled(Cost),
    /// The request was never sent.
    Released,
}
