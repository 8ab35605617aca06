//! Locks and atomics. Under `--cfg shuttle` they are those of the models' scheduler, which may switch
//! threads at every use. `std::sync::Arc` and `OnceLock` are not replaced, since no thread blocks in
//! them.

#[cfg(not(shuttle))]
mod choice {
    pub(crate) use foldhash::fast::RandomState;
    pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
    pub(crate) use std::sync::atomic;

    pub(crate) const SHARDS: usize = 64;
}

#[cfg(shuttle)]
mod choice {
    // Each key is in the same shard in every run, so that a failing schedule can be replayed.
    pub(crate) use foldhash::fast::FixedState as RandomState;
    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle_parking_lot::{Mutex, MutexGuard, RwLock};

    /// Few, so that some keys share one and others don't.
    pub(crate) const SHARDS: usize = 2;
}

pub(crate) use choice::{Mutex, MutexGuard, RandomState, RwLock, SHARDS, atomic};
