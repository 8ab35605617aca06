use std::collections::BTreeMap;
use std::sync::Arc;

use ::metrics::SharedString;
use parking_lot::Mutex;

use super::figure::{CAPACITY, Figure, HELD, STORE_FAILURES, STORE_FLUSHES, USED, WAITING};
use super::listener::Listener;
use crate::limiter::{KeyStats, LimitStats, WeakLimiter};
use crate::quota::{Dimension, Window};

/// The gauges of a limiter, which are read off when somebody asks. What is counted needs no meter.
#[derive(Debug)]
pub struct Meter {
    limiter: WeakLimiter,
    listener: Arc<Listener>,
    /// What each gauge said last: one whose keys are gone says 0 from then on.
    last: Mutex<Reading>,
}

/// The amounts of gauges, by the figure's name and the values of its labels.
type Reading = BTreeMap<(&'static str, Vec<SharedString>), u64>;

impl Meter {
    pub(super) fn new(limiter: WeakLimiter, listener: Arc<Listener>) -> Self {
        Self { limiter, listener, last: Mutex::default() }
    }

    /// Reads the gauges off: to be called before each scrape, or every few seconds.
    ///
    /// Keys of the same name are added up. Takes as long as [`Limiter::iter`], under a microsecond a
    /// key.
    ///
    /// [`Limiter::iter`]: crate::limiter::Limiter::iter
    pub fn sample(&self) {
        let Some(limiter) = self.limiter.upgrade() else { return };
        let mut reading = Reading::new();
        for (key, stats) in limiter.iter() {
            self.add(&mut reading, self.listener.names.of(&key), &stats);
        }
        let mut last = self.last.lock();
        let gone = last.keys().filter(|series| !reading.contains_key(*series));
        let gone: Vec<_> = gone.map(|series| (series.clone(), 0)).collect();
        for ((name, values), amount) in reading.iter().chain(gone.iter().map(|(s, a)| (s, a))) {
            let figure = GAUGES.iter().find(|figure| figure.name == *name);
            figure.into_iter().for_each(|figure| self.listener.sink.set(figure, values, *amount));
        }
        *last = reading;
    }

    /// How often a store has been written in all, and how often it could not be, as its keeping
    /// counts them: to be called before [`sample`](Self::sample).
    ///
    /// ```text
    /// let status = keeping.status();
    /// meter.store(status.flushes, status.failures);
    /// ```
    pub fn store(&self, flushes: u64, failures: u64) {
        self.listener.sink.count_to(&STORE_FLUSHES, flushes);
        self.listener.sink.count_to(&STORE_FAILURES, failures);
    }

    fn add(&self, reading: &mut Reading, key: SharedString, stats: &KeyStats) {
        for limit in &stats.limits {
            let LimitStats { dimension, window, limit: capacity, used, held, .. } = limit;
            let values = vec![
                key.clone(),
                self.listener.dimensions.of(dimension.as_str()),
                seconds(dimension, *window),
            ];
            for (figure, amount) in [(&CAPACITY, capacity), (&USED, used), (&HELD, held)] {
                let sum = reading.entry((figure.name, values.clone())).or_default();
                *sum = sum.saturating_add(*amount);
            }
        }
        let waiting = u64::try_from(stats.waiting).unwrap_or(u64::MAX);
        *reading.entry((WAITING.name, vec![key])).or_default() += waiting;
    }
}

/// The length of a window; empty for what has none.
fn seconds(dimension: &Dimension, window: Window) -> SharedString {
    match dimension {
        Dimension::Concurrency => SharedString::const_str(""),
        _ => window.as_duration().as_secs_f64().to_string().into(),
    }
}

const GAUGES: &[&Figure] = &[&CAPACITY, &USED, &HELD, &WAITING];
