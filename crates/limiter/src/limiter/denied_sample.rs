use crate::answer::code::Code;
use crate::quota::{Dimension, Key};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// A sampled denial of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedSample {
    /// The key that denied the request.
    pub key: Key,
    /// The reason; `None` if the queue of the key was full.
    pub code: Option<Code>,
    /// The dimension that was short, if any.
    pub dimension: Option<Dimension>,
}

/// Keeps the first denial after each call of [`take`](Self::take).
#[derive(Debug, Default)]
pub(super) struct Sample {
    is_wanted: AtomicBool,
    kept: Mutex<Option<DeniedSample>>,
}

impl Sample {
    #[inline]
    pub(super) fn offer(&self, key: &str, code: Option<Code>, dimension: Option<&Dimension>) {
        if self.is_wanted.load(Ordering::Relaxed) {
            self.keep(key, code, dimension);
        }
    }

    #[cold]
    fn keep(&self, key: &str, code: Option<Code>, dimension: Option<&Dimension>) {
        let mut kept = self.kept.lock();
        if kept.is_none() {
            *kept = Some(DeniedSample { key: key.into(), code, dimension: dimension.cloned() });
        }
        self.is_wanted.store(false, Ordering::Relaxed);
    }

    pub(super) fn take(&self) -> Option<DeniedSample> {
        let mut kept = self.kept.lock();
        self.is_wanted.store(true, Ordering::Relaxed);
        kept.take()
    }
}
