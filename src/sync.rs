//! Locks and atomics: those of the models under `--cfg shuttle`, where every use of
//! one is a point at which another thread may go on. `std::sync::Arc` and `OnceLock` are used as they
//! are: nobody waits in them.

#[cfg(not(shuttle))]
mod choice {
    pub(crate) use foldhash::fast::RandomState;
    pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
    pub(crate) use std::sync::atomic;

    pub(crate) const SHARDS: usize = 64;
}

#[cfg(shuttle)]
mod choice {
    // Keys fall where they fell when a schedule failed, so that it can be replayed.
    pub(crate) use foldhash::fast::FixedState as RandomState;
    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle_parking_lot::{Mutex, MutexGuard, RwLock};

    /// Few, so that some keys share one and others don't.
    pub(crate) const SHARDS: usize = 2;
}

pub(crate) use choice::{Mutex, MutexGuard, RandomState, RwLock, SHARDS, atomic};
