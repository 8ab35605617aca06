use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{
    Attached, BuildError, Clock, Closing, KeyChanges, Limiter, Measurement, QuotaOrigin,
    SystemClock, WeakLimiter,
};
use paceline_limiter::seam::{self, LatencyRecorder};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::pending_changes::PendingChanges;
use crate::status::StoreStatus;
use crate::store::Store;

/// Persists the state of a limiter in a store, from a dedicated thread. Clones share the same
/// state.
///
/// Changes are written at every flush interval, when the limiter is [closed](Limiter::close), and
/// when its last clone is dropped; each write also reads the changes of other processes that share
/// the store. The interval is real time, independent of the limiter's clock.
///
/// If the store can't be written, the limiter continues in memory, and its changes are written as
/// soon as the store works again. [`status`](Self::status) reports the problem, and a warning is
/// logged when a problem begins or its reason changes. Dropping this handle has no effect: the limiter
/// is persisted for its lifetime.
#[derive(Debug, Clone)]
pub struct Persistence(Arc<PersistenceWorker>);

impl Persistence {
    /// Opens the store, restores its state into the limiter, and persists the limiter from now on.
    /// Usage before this call is not persisted, so call it before the first request, and only once
    /// per limiter.
    ///
    /// Quotas that were set or learned in an earlier run are restored; the limiter's own quotas of
    /// the same name take precedence.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store can't be opened. The limiter is unchanged and can be
    /// used in memory; opening is not retried.
    pub fn start(
        limiter: &Limiter,
        mut store: impl Store,
        flush: Duration,
    ) -> Result<Self, StoreError> {
        let flush = flush.max(MIN_FLUSH_INTERVAL);
        store.set_boot(seam::boot(limiter));
        store.set_flush(flush);
        let mut state = store.open(limiter.now())?;
        state.quotas.retain(|quota| quota.origin != QuotaOrigin::Configured);
        for quota in &state.quotas {
            match seam::check_quota(limiter, &quota.name, &quota.quota) {
                Ok(()) | Err(BuildError::EmptyKey) => {}
                Err(error) => return Err(StoreError::new(Path::new("store"), error.to_string())),
            }
        }
        seam::restore_quotas(limiter, &state.quotas);
        seam::track(limiter);
        limiter.state().absorb(&state.keys);
        let persisted = PersistedState {
            store: Box::new(store),
            pending: PendingChanges::default(),
            quotas: None,
            ended: false,
        };
        let worker = Arc::new(PersistenceWorker {
            limiter: limiter.downgrade(),
            persisted: Mutex::new(persisted),
            status: Mutex::default(),
            calls: Mutex::default(),
            wake: Condvar::new(),
            latency: LatencyRecorder::default(),
            ticks: SystemClock::new(),
        });
        let persistence = Self(Arc::clone(&worker));
        let thread = thread::Builder::new().name("paceline-store".into());
        thread.spawn(move || worker.run(flush)).map_err(|error| {
            StoreError::new(Path::new("store"), format!("failed to start its thread ({error})"))
        })?;
        seam::attach(limiter, Arc::<PersistenceWorker>::clone(&persistence.0));
        // The first flush reads the amounts that other processes hold.
        let _ = persistence.flush_now();
        Ok(persistence)
    }

    /// Writes all changes now, and reads those of other processes. Blocks on disk I/O.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store can't be written. The changes are kept for the next
    /// flush.
    pub fn flush_now(&self) -> Result<(), StoreError> {
        self.0.flush()
    }

    /// Returns the time of the last flush, the number of flushes and failures, and the last error.
    pub fn status(&self) -> StoreStatus {
        self.0.status()
    }
}

struct PersistenceWorker {
    limiter: WeakLimiter,
    persisted: Mutex<PersistedState>,
    status: Mutex<StoreStatus>,
    calls: Mutex<PendingCalls>,
    wake: Condvar,
    /// The durations of flushes, by the system's clock.
    latency: LatencyRecorder,
    ticks: SystemClock,
}

/// Requests to the thread between two flushes.
#[derive(Default)]
struct PendingCalls {
    /// The callers that wait for a flush.
    waiting: Vec<oneshot::Sender<()>>,
    ended: bool,
}

struct PersistedState {
    store: Box<dyn Store>,
    pending: PendingChanges,
    /// The version of the quotas that was last written.
    quotas: Option<u64>,
    /// Set after the final write.
    ended: bool,
}

impl PersistenceWorker {
    fn run(&self, flush: Duration) {
        let mut pause = flush;
        while let Some(waiting) = self.wait(pause) {
            let started_at = self.limiter.now();
            let _ = self.flush();
            // The interval is measured from start to start, with a minimum pause for slow disks.
            let elapsed = self.limiter.now() - started_at;
            pause = flush.saturating_sub(elapsed).max(flush / 4);
            // The receiver may have been dropped.
            waiting.into_iter().for_each(|waiting| {
                let _ = waiting.send(());
            });
        }
    }

    /// Waits until the next flush is due, and checks the store meanwhile. Returns the callers that wait
    /// for the flush, or `None` at the end.
    fn wait(&self, mut pause: Duration) -> Option<Vec<oneshot::Sender<()>>> {
        loop {
            let mut calls = self.calls.lock();
            let part = pause.min(CHECK_INTERVAL);
            if calls.waiting.is_empty() && !calls.ended {
                self.wake.wait_for(&mut calls, part);
            }
            if calls.ended {
                return None;
            }
            pause -= part;
            if pause.is_zero() || !calls.waiting.is_empty() {
                return Some(std::mem::take(&mut calls.waiting));
            }
            drop(calls);
            self.check();
        }
    }

    fn check(&self) {
        let mut persisted = self.persisted.lock();
        if !persisted.ended
            && let Err(error) = persisted.store.check()
        {
            self.status.lock().record_trouble(&error);
        }
    }

    fn status(&self) -> StoreStatus {
        StoreStatus { latency: self.latency.get(), ..self.status.lock().clone() }
    }

    fn flush(&self) -> Result<(), StoreError> {
        let mut persisted = self.persisted.lock();
        let Some(limiter) = self.limiter.upgrade_detached().filter(|_| !persisted.ended) else {
            return Ok(());
        };
        let (now, begin) = (limiter.now(), self.ticks.now());
        let result = persisted.flush(&limiter, now);
        self.latency.record(self.ticks.now() - begin);
        self.status.lock().record(&result, now, persisted.pending.keys());
        drop(persisted);
        result
    }
}

impl PersistedState {
    fn flush(&mut self, limiter: &Limiter, now: Timestamp) -> Result<(), StoreError> {
        // The clock may have stopped while the machine was suspended.
        self.store.set_boot(seam::boot(limiter));
        self.pending.add(seam::collect_changes(limiter));
        let version = seam::quotas_version(limiter);
        let quotas = (self.quotas != Some(version)).then(|| limiter.quotas().list());
        let others = self.store.sync(&self.pending.all(), quotas.as_deref(), now)?;
        self.quotas = Some(version);
        self.pending.clear();
        seam::apply_changes(limiter, &others);
        Ok(())
    }

    fn finish(&mut self, limiter: &Limiter, now: Timestamp) -> Result<(), StoreError> {
        self.flush(limiter, now)?;
        self.store.close(now)
    }
}

impl Attached for PersistenceWorker {
    fn close(&self) -> Closing {
        let (done, waiting) = oneshot::channel();
        self.calls.lock().waiting.push(done);
        self.wake.notify_all();
        Box::pin(async move { drop(waiting.await) })
    }

    fn unsaved(&self) -> Option<String> {
        self.status.lock().trouble.as_ref().map(ToString::to_string)
    }

    fn is_store_lost(&self) -> bool {
        self.status.lock().trouble.as_ref().is_some_and(|trouble| trouble.lost)
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.status().measurements()
    }

    fn end(&self, last: Vec<KeyChanges>) {
        let now = self.limiter.now();
        let mut persisted = self.persisted.lock();
        persisted.pending.add(last);
        persisted.ended = true;
        let result = match self.limiter.upgrade_detached() {
            Some(limiter) => persisted.finish(&limiter, now),
            None => Ok(()),
        };
        let mut status = self.status.lock();
        status.record(&result, now, persisted.pending.keys());
        if status.pending_keys > 0 {
            let keys = status.pending_keys;
            tracing::error!(
                keys,
                "the limiter closed before its last changes could be saved; they are lost"
            );
        }
        drop((status, persisted));
        let mut calls = self.calls.lock();
        calls.ended = true;
        calls.waiting.clear();
        self.wake.notify_all();
    }
}

impl fmt::Debug for PersistenceWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistenceWorker").finish_non_exhaustive()
    }
}

/// The maximum time between two checks of the store.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The minimum flush interval, which avoids constant writes.
const MIN_FLUSH_INTERVAL: Duration = Duration::from_millis(1);
