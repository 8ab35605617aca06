use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::error::StoreError;
use super::pending_changes::PendingChanges;
use super::status::StoreStatus;
use super::store::Store;
use crate::limiter::{
    Attached, Closing, KeyChanges, Limiter, MissingFeature, QuotaOrigin, WeakLimiter,
};
use crate::timestamp::Timestamp;

/// Keeps a limiter in a store, from a thread of its own. Clones are the same.
///
/// What the limiter did is written down in every flush interval, when it is
/// [closed](Limiter::close), and when its last clone is dropped; with each time it takes over what
/// others did who share the store. The interval is one of real time, whatever the limiter's clock.
///
/// If the store can't be written, the limiter goes on in memory: what it did is kept, and written
/// down as soon as that is possible. [`status`](Self::status) tells, and so does a warning, once for
/// each kind of trouble. Dropping this changes nothing: a limiter is kept for as long as it is there.
#[derive(Debug, Clone)]
pub struct Persistence(Arc<PersistenceWorker>);

impl Persistence {
    /// Opens the store, puts what it keeps into the limiter, and keeps it from now on. What the
    /// limiter did before isn't kept: start before the first request. A limiter has one store.
    ///
    /// Quotas that were set or learned in an earlier run come back; of the same name, the limiter's
    /// own count.
    ///
    /// # Errors
    /// [`StoreError`] if the store can't be opened: the limiter is as it was, and goes on in memory if
    /// the caller lets it. Nobody tries again.
    pub fn start(
        limiter: &Limiter,
        mut store: impl Store,
        flush: Duration,
    ) -> Result<Self, StoreError> {
        let flush = flush.max(MIN_FLUSH_INTERVAL);
        store.set_boot(limiter.state().boot());
        store.set_flush(flush);
        let mut state = store.open(limiter.now())?;
        state.quotas.retain(|quota| quota.origin != QuotaOrigin::Configured);
        for quota in &state.quotas {
            MissingFeature::of_quota(&quota.name)
                .map_err(|error| StoreError::new(Path::new("store"), error.to_string()))?;
        }
        limiter.quotas().restore(&state.quotas);
        limiter.state().track();
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
        });
        let persistence = Self(Arc::clone(&worker));
        let thread = thread::Builder::new().name("tollgate-store".into());
        thread.spawn(move || worker.run(flush)).map_err(|error| {
            StoreError::new(Path::new("store"), format!("failed to start its thread ({error})"))
        })?;
        limiter.state().attach(Arc::<PersistenceWorker>::clone(&persistence.0));
        // What others hold is told with the first.
        let _ = persistence.flush_now();
        Ok(persistence)
    }

    /// Writes down what the limiter did by now, and takes over what others did. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError`] if the store couldn't be written: what is to be written is kept.
    pub fn flush_now(&self) -> Result<(), StoreError> {
        self.0.flush()
    }

    /// How it goes.
    pub fn status(&self) -> StoreStatus {
        self.0.status.lock().clone()
    }
}

struct PersistenceWorker {
    limiter: WeakLimiter,
    persisted: Mutex<PersistedState>,
    status: Mutex<StoreStatus>,
    calls: Mutex<PendingCalls>,
    wake: Condvar,
}

/// What the thread is to do before its time.
#[derive(Default)]
struct PendingCalls {
    /// Who waits for everything to be written down.
    waiting: Vec<oneshot::Sender<()>>,
    ended: bool,
}

struct PersistedState {
    store: Box<dyn Store>,
    pending: PendingChanges,
    /// The version of the quotas that was last written down.
    quotas: Option<u64>,
    /// Nothing is written any more.
    ended: bool,
}

impl PersistenceWorker {
    fn run(&self, flush: Duration) {
        let mut pause = flush;
        loop {
            let mut calls = self.calls.lock();
            if calls.waiting.is_empty() && !calls.ended {
                self.wake.wait_for(&mut calls, pause);
            }
            if calls.ended {
                return;
            }
            let waiting = std::mem::take(&mut calls.waiting);
            drop(calls);
            let begun = self.limiter.now();
            let _ = self.flush();
            // From start to start, but a slow disk has some rest.
            let took = self.limiter.now() - begun;
            pause = flush.saturating_sub(took).max(flush / 4);
            // Whoever no longer waits doesn't need to hear it.
            waiting.into_iter().for_each(|waiting| {
                let _ = waiting.send(());
            });
        }
    }

    fn flush(&self) -> Result<(), StoreError> {
        let mut persisted = self.persisted.lock();
        let Some(limiter) = self.limiter.aside().filter(|_| !persisted.ended) else {
            return Ok(());
        };
        let now = limiter.now();
        let result = persisted.flush(&limiter, now);
        self.status.lock().note(&result, now, persisted.pending.keys());
        drop(persisted);
        result
    }
}

impl PersistedState {
    fn flush(&mut self, limiter: &Limiter, now: Timestamp) -> Result<(), StoreError> {
        // The clock may have stood still since, while the machine slept.
        self.store.set_boot(limiter.state().boot());
        self.pending.add(limiter.state().collect_changes());
        let version = limiter.quotas().version();
        let quotas = (self.quotas != Some(version)).then(|| limiter.quotas().list());
        let others = self.store.sync(&self.pending.all(), quotas.as_deref(), now)?;
        self.quotas = Some(version);
        self.pending.clear();
        limiter.state().apply_changes(&others);
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

    fn end(&self, last: Vec<KeyChanges>) {
        let now = self.limiter.now();
        let mut persisted = self.persisted.lock();
        persisted.pending.add(last);
        persisted.ended = true;
        let result = match self.limiter.aside() {
            Some(limiter) => persisted.finish(&limiter, now),
            None => Ok(()),
        };
        let mut status = self.status.lock();
        status.note(&result, now, persisted.pending.keys());
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
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

/// A store that is written to all the time is of no use to anybody.
const MIN_FLUSH_INTERVAL: Duration = Duration::from_millis(1);
