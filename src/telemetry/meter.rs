use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::metrics::SharedString;
use parking_lot::Mutex;

use super::listener::Listener;
use super::metric_list::ALL;
use super::metric_spec::{CAPACITY, HELD, LEARNED, MetricSpec, USED, UTILIZATION, WAITING};
use crate::limiter::{
    KeyStats, Latency, LearnedLimit, LimitStats, Measured, Measurement, Utilization, WeakLimiter,
};
use crate::quota::{Dimension, Window};
use paceline_limiter::seam;

/// The gauges of a limiter, and the metrics of its stores and buses, which are updated on demand. Other
/// counters and histograms don't need a meter.
#[derive(Debug)]
pub struct Meter {
    limiter: WeakLimiter,
    listener: Arc<Listener>,
    /// The values at the last update. A gauge that has no keys any more is set to 0.
    last: Mutex<GaugeValues>,
    /// The recorded part of each latency.
    recorded: Mutex<BTreeMap<&'static str, Latency>>,
}

/// The values of gauges, by the name of the metric and its labels.
type GaugeValues = BTreeMap<(&'static str, Vec<SharedString>), f64>;

impl Meter {
    pub(super) fn new(limiter: WeakLimiter, listener: Arc<Listener>) -> Self {
        Self { limiter, listener, last: Mutex::default(), recorded: Mutex::default() }
    }

    /// Updates the gauges, and the metrics of stores and buses. Call it before each scrape, or every few seconds.
    ///
    /// Of keys with the same label, waiting requests are added up; limits, and what is used of them, are left out. An
    /// update takes as long as [`LimiterState::stats`]: less than a microsecond per key.
    ///
    /// [`LimiterState::stats`]: crate::limiter::LimiterState::stats
    pub fn sample(&self) {
        let Some(limiter) = self.limiter.upgrade() else { return };
        let mut current = GaugeValues::new();
        let stats = limiter.state().stats();
        let labels: Vec<_> = stats.iter().map(|(key, _)| self.listener.names.of(key)).collect();
        let mut keys = HashMap::<_, u64>::new();
        labels.iter().for_each(|label| *keys.entry(label).or_default() += 1);
        for ((_, stats), label) in stats.iter().zip(&labels) {
            self.add(&mut current, label, keys[label] == 1, stats);
        }
        self.record(&mut current, seam::measurements(&limiter));
        let mut last = self.last.lock();
        let gone = last.keys().filter(|series| !current.contains_key(*series));
        let gone: Vec<_> = gone.map(|series| (series.clone(), 0.0)).collect();
        for ((name, values), amount) in current.iter().chain(gone.iter().map(|(s, a)| (s, a))) {
            let metric = ALL.iter().find(|metric| metric.name == *name);
            metric.into_iter().for_each(|metric| self.listener.sink.set(metric, values, *amount));
        }
        *last = current;
    }

    /// Records the values that the backend, the stores and the buses of the limiter report, those of several
    /// components together.
    fn record(&self, current: &mut GaugeValues, measurements: Vec<Measurement>) {
        let mut together = BTreeMap::<_, Measured>::new();
        for Measurement { name, label, value, .. } in measurements {
            let known = together.entry((name, label));
            known
                .and_modify(|known| *known = seam::measured_together(*known, value))
                .or_insert(value);
        }
        for ((name, label), value) in together {
            let Some(metric) = ALL.iter().find(|metric| metric.name == name) else { continue };
            let labels = [SharedString::const_str(label)];
            let mut set = |amount| {
                let labels = if metric.labels.is_empty() { Vec::new() } else { labels.to_vec() };
                current.insert((name, labels), amount);
            };
            match value {
                Measured::Total(total) => self.listener.sink.count_to(metric, &labels, total),
                Measured::Amount(amount) => set(amount as f64),
                Measured::Flag(flag) => set(f64::from(u8::from(flag))),
                Measured::Latency(latency) => {
                    let earlier = self.recorded.lock().insert(name, latency).unwrap_or_default();
                    // The mean of a range is within the range, and all means have the right sum.
                    for (count, mean) in seam::means_since(&latency, &earlier) {
                        self.listener.sink.record_many(metric, mean, count);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the values of a key. Without `has_own_label`, its limits are left out: those of several keys don't add up
    /// to one.
    fn add(
        &self,
        current: &mut GaugeValues,
        key: &SharedString,
        has_own_label: bool,
        stats: &KeyStats,
    ) {
        for limit in stats.limits.iter().filter(|_| has_own_label) {
            let LimitStats { dimension, window, limit: capacity, used, held, .. } = limit;
            let values = vec![
                key.clone(),
                self.listener.dimensions.of(dimension.as_str()),
                seconds(dimension, *window),
            ];
            let unit = if dimension.is_usd() { MICRO_DOLLARS } else { 1.0 };
            let mut add = |metric: &MetricSpec, amount: u64| {
                *current.entry((metric.name, values.clone())).or_default() += amount as f64 / unit;
            };
            add(&USED, *used);
            add(&HELD, *held);
            add(&CAPACITY, *capacity);
        }
        for LearnedLimit { dimension, amount, .. } in stats.learned.iter().filter(|_| has_own_label)
        {
            let values = vec![key.clone(), self.listener.dimensions.of(dimension.as_str())];
            *current.entry((LEARNED.name, values)).or_default() += amount;
        }
        for Utilization { window, used, .. } in &stats.utilization {
            let series = (UTILIZATION.name, vec![key.clone(), self.listener.dimensions.of(window)]);
            // Keys with the same label belong to the same account.
            let largest = current.entry(series).or_default();
            *largest = largest.max(*used);
        }
        *current.entry((WAITING.name, vec![key.clone()])).or_default() += stats.waiting as f64;
    }
}

/// Returns the length of a window in seconds, `total` for a limit that never resets, or an empty label for requests in
/// flight.
fn seconds(dimension: &Dimension, window: Window) -> SharedString {
    match dimension {
        Dimension::Concurrency => SharedString::const_str(""),
        _ if window.is_endless() => SharedString::const_str("total"),
        _ => window.as_duration().as_secs_f64().to_string().into(),
    }
}

/// The micro-dollars in a dollar, in which metrics state money.
const MICRO_DOLLARS: f64 = 1e6;
