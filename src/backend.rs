use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::engine::{Level, Rule, Shortfall, Wait};
use crate::quota::{Cost, Key};
use crate::timestamp::Timestamp;

/// A reservation in a place that takes time to ask.
pub type Reserving = Pin<Box<dyn Future<Output = Result<(), Unmet>> + Send>>;

/// A backend's end.
pub type Closing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the buckets are, if not in this process: a store that several processes share.
///
/// The queue stays here: only the first of a key asks. A limiter without a backend keeps its buckets
/// itself and never calls one.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Reserves in all buckets of all keys or in none.
    ///
    /// The answer to a refusal should be [`Wait::At`]: on [`Wait::Unknown`] the first asks again
    /// when a permit of this process ends.
    ///
    /// # Cancel safety
    /// A dropped future may have been carried out. The limiter then calls [`end`](Self::end) with
    /// [`Ending::Released`], which must undo the reservation if there is one.
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving;

    /// The same where no answer from elsewhere is needed: out of what was fetched for later. `None`
    /// says nothing, and [`reserve`](Self::reserve) is asked. Must not block.
    fn reserve_here(&self, _reservation: &Arc<Reservation>) -> Option<Result<(), Unmet>> {
        None
    }

    /// The same as [`reserve`](Self::reserve) for who can't await. May block the thread for as long
    /// as [`patience`](Self::patience) says; without an answer by then it refuses.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    fn try_reserve(&self, reservation: &Arc<Reservation>) -> Result<(), Unmet>;

    /// How long an answer takes at most. Who has no time left to wait for room is asked for all the
    /// same, and waits so long for the answer.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Ends a reservation; also one that was refused and isn't asked for again, where that is known at
    /// once. Must not block: what takes time belongs in a task of its own.
    fn end(&self, reservation: &Arc<Reservation>, ending: Ending);

    /// Takes the cost of a reservation from its buckets, whether it fits or not: a request that went
    /// past the limiter. Must not block.
    fn charge(&self, reservation: &Arc<Reservation>);

    /// Forgets what a key has used. Must not block.
    fn reset(&self, key: &str);

    /// What is known of the buckets of a key, one figure for each of its rules; `None` where nothing
    /// is. Must not block, and must not call the limiter, which holds a lock meanwhile.
    fn levels(&self, _key: &str, _rules: &[Rule]) -> Option<Vec<Level>> {
        None
    }

    /// How it fares, for who looks after it. Must not block.
    fn status(&self) -> Option<BackendStatus> {
        None
    }

    /// The limiter was closed: gives back what is kept for later, and writes down what isn't yet.
    fn close(&self) -> Closing {
        Box::pin(std::future::ready(()))
    }
}

/// The status of a [`Backend`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendStatus {
    /// True if it can be asked now.
    pub connected: bool,
    /// The number of processes that share it, this one included, as last known.
    pub members: u64,
    /// Decisions that were made without it, since it couldn't be asked.
    pub degraded: u64,
}

/// What a [`Backend`] is asked for. The same value is given to all calls for one request, unless a
/// quota changes in between.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reservation {
    /// The keys whose buckets are meant: all of them or none.
    pub scopes: Box<[Reserved]>,
    /// The amounts that are reserved of each.
    pub cost: Cost,
}

/// One key of a [`Reservation`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Reserved {
    /// The key.
    pub key: Key,
    /// Its rules; one bucket each.
    pub rules: Arc<[Rule]>,
    /// What the backend notes of it until it ends; 0 at first.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "for a shared store"))]
    pub(crate) note: AtomicU64,
}

/// Why a [`Backend`] has not reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    /// A bucket has no room.
    Short {
        /// Which of the keys of the [`Reservation`] it belongs to.
        scope: usize,
        /// Which of its rules that is, and when there will be room.
        shortfall: Shortfall,
    },
    /// There is no room, and it isn't known which of the buckets is short.
    Full(Wait),
    /// The place can't be asked now. It is asked again at this time.
    Away {
        /// When.
        until: Timestamp,
    },
}

impl Unmet {
    /// When to ask again.
    pub fn wait(&self) -> Wait {
        match *self {
            Self::Short { shortfall, .. } => shortfall.wait,
            Self::Full(wait) => wait,
            Self::Away { until } => Wait::At(until),
        }
    }
}

/// The end of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The request left, and took so much.
    Settled(Cost),
    /// The request never left.
    Released,
}
