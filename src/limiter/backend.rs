use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use compact_str::CompactString;

use crate::engine::{Rule, Wait};
use crate::quota::Cost;

/// A reservation in a place that takes time to ask.
pub type Reserving = Pin<Box<dyn Future<Output = Result<(), Wait>> + Send>>;

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

    /// Reserves without waiting for an answer from elsewhere; a backend that can't, refuses.
    ///
    /// # Errors
    /// The wait, as from [`reserve`](Self::reserve).
    fn try_reserve(&self, reservation: &Arc<Reservation>) -> Result<(), Wait>;

    /// Ends a reservation. Must not block: what takes time belongs in a task of its own.
    fn end(&self, reservation: &Arc<Reservation>, ending: Ending);

    /// The limiter was closed: gives back what is kept for later, and writes down what isn't yet.
    fn close(&self) -> Closing {
        Box::pin(std::future::ready(()))
    }
}

/// What a [`Backend`] is asked for. The same value is given to all calls for one request, unless a
/// quota changes in between.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reservation {
    /// The keys whose buckets are meant: all of them or none.
    pub scopes: Box<[Reserved]>,
    /// What is reserved of each.
    pub cost: Cost,
}

/// One key of a [`Reservation`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Reserved {
    /// The key.
    pub key: CompactString,
    /// Its rules; one bucket each.
    pub rules: Arc<[Rule]>,
}

/// How a reservation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The request left, and took so much.
    Settled(Cost),
    /// The request never left.
    Released,
}
