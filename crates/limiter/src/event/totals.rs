use crate::sync::atomic::{AtomicU64, Ordering};

/// Counts of requests since the limiter was built. A request with several keys counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Granted requests.
    pub granted: u64,
    /// Requests refused for lack of quota, or because the queue was full.
    pub denied: u64,
    /// Granted requests that had waited.
    pub waited: u64,
}

/// The totals of all threads, in stripes, so that threads seldom write to the same cache line.
#[derive(Debug, Default)]
pub(crate) struct StripedTotals([Stripe; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    granted: AtomicU64,
    denied: AtomicU64,
    waited: AtomicU64,
}

impl StripedTotals {
    #[inline]
    pub(crate) fn count_granted(&self) {
        self.own().granted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_denied(&self) {
        self.own().denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_waited(&self) {
        self.own().waited.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> Totals {
        self.0.iter().fold(Totals::default(), |sum, stripe| Totals {
            granted: sum.granted + stripe.granted.load(Ordering::Relaxed),
            denied: sum.denied + stripe.denied.load(Ordering::Relaxed),
            waited: sum.waited + stripe.waited.load(Ordering::Relaxed),
        })
    }

    /// Returns the stripe of this thread.
    #[inline]
    fn own(&self) -> &Stripe {
        &self.0[STRIPE.with(|stripe| *stripe) % STRIPES]
    }
}

thread_local! {
    /// The stripe of this thread. Stripes are assigned round-robin.
    static STRIPE: usize = NEXT_STRIPE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

static NEXT_STRIPE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

const STRIPES: usize = 16;
