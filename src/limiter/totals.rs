use std::ops::AddAssign;

use compact_str::CompactString;

use super::limiter::Limiter;
use super::sync::Mutex;
use super::sync::atomic::{AtomicBool, Ordering};
use crate::quota::Dimension;

/// What a limiter has answered since it was made; a request with several keys is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Reservations that were granted.
    pub granted: u64,
    /// Reservations that were refused for want of quota, or since too many waited.
    pub denied: u64,
    /// Those of the granted that had to wait.
    pub waited: u64,
}

impl Limiter {
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.shards.iter().for_each(|shard| totals += shard.keys().totals);
        totals
    }

    pub(super) fn sample_denied(&self) -> Option<(CompactString, Option<Dimension>)> {
        self.core.denied.take()
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.granted += other.granted;
        self.denied += other.denied;
        self.waited += other.waited;
    }
}

/// One of many, kept for who asks.
#[derive(Debug, Default)]
pub(super) struct Sample {
    is_wanted: AtomicBool,
    kept: Mutex<Option<(CompactString, Option<Dimension>)>>,
}

impl Sample {
    #[inline]
    pub(super) fn offer(&self, key: &str, dimension: Option<&Dimension>) {
        if self.is_wanted.load(Ordering::Relaxed) {
            self.keep(key, dimension);
        }
    }

    #[cold]
    fn keep(&self, key: &str, dimension: Option<&Dimension>) {
        let mut kept = self.kept.lock();
        if kept.is_none() {
            *kept = Some((key.into(), dimension.cloned()));
        }
        self.is_wanted.store(false, Ordering::Relaxed);
    }

    fn take(&self) -> Option<(CompactString, Option<Dimension>)> {
        let mut kept = self.kept.lock();
        self.is_wanted.store(true, Ordering::Relaxed);
        kept.take()
    }
}
