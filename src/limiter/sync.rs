//! Locks and atomics of the limiter: those of the models under `--cfg shuttle`, where every use of
//! one is a point at which another thread may go on. `std::sync::Arc` and `OnceLock` are used as they
//! are: nobody waits in them.

#[cfg(not(shuttle))]
mod choice {
    pub(in crate::limiter) use foldhash::fast::RandomState;
    pub(in crate::limiter) use parking_lot::{Mutex, MutexGuard, RwLock};
    pub(in crate::limiter) use std::sync::atomic;

    pub(in crate::limiter) const SHARDS: usize = 64;
}

#[cfg(shuttle)]
mod choice {
    // Keys fall where they fell when a schedule failed, so that it can be replayed.
    pub(in crate::limiter) use foldhash::fast::FixedState as RandomState;
    pub(in crate::limiter) use shuttle::sync::atomic;
    pub(in crate::limiter) use shuttle_parking_lot::{Mutex, MutexGuard, RwLock};

    /// Few, so that some keys share one and others don't.
    pub(in crate::limiter) const SHARDS: usize = 2;
}

pub(super) use choice::{Mutex, MutexGuard, RandomState, RwLock, SHARDS, atomic};
