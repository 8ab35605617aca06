use std::fmt;
use std::sync::Arc;

use crate::quota::Key;
use ::metrics::Recorder;
use paceline_limiter::seam;

use super::key_names::{KeyNames, NameFn};
use super::label_set::LabelSet;
use super::listener::Listener;
use super::meter::Meter;
use super::sink::Sink;
use crate::limiter::Limiter;

/// The metrics of a limiter, and the recorder that receives them. The [module](super) lists them.
#[derive(Clone)]
pub struct Metrics {
    sink: Sink,
    max_keys: usize,
    naming: Option<NameFn>,
    without_reservations: bool,
}

impl Metrics {
    /// Creates metrics for the global recorder. Install the recorder, usually with an exporter, before the
    /// first event.
    pub fn new() -> Self {
        Self {
            sink: Sink::default(),
            max_keys: MAX_KEYS,
            naming: None,
            without_reservations: false,
        }
    }

    /// Sets the recorder, in place of the global one.
    #[must_use]
    pub fn with_recorder(self, recorder: impl Recorder + Send + Sync + 'static) -> Self {
        Self { sink: Sink::to(recorder), ..self }
    }

    /// Sets the maximum number of distinct `key` labels; further keys are counted as `other`. Default: 256.
    #[must_use]
    pub fn with_max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// Sets a function that returns the label of a key, or `None` for the default label. Use it for keys that
    /// have no quota and aren't secret, such as those of
    /// [`Acquire::limits`](crate::limiter::Acquire::limits). The maximum number of labels still applies.
    ///
    /// ```
    /// # use paceline::telemetry::Metrics;
    /// let metrics = Metrics::new().with_names(|key| key.starts_with("job:").then(|| key.into()));
    /// # let _ = metrics;
    /// ```
    #[must_use]
    pub fn with_names(self, naming: impl Fn(&str) -> Option<Key> + Send + Sync + 'static) -> Self {
        Self { naming: Some(Arc::new(naming)), ..self }
    }

    /// Leaves out the metrics that add cost to each reservation. The gauges, cool-downs, reductions,
    /// recoveries, and the metrics of the layer about requests to a provider remain.
    /// [`LimiterState::totals`](crate::limiter::LimiterState::totals) counts granted and denied requests.
    #[must_use]
    pub fn without_reservations(self) -> Self {
        Self { without_reservations: true, ..self }
    }

    /// Starts recording the events of a limiter, and returns the meter of its gauges.
    pub fn install(self, limiter: &Limiter) -> Meter {
        let Self { sink, max_keys, naming, without_reservations } = self;
        sink.describe();
        let listener = Arc::new(Listener {
            sink,
            names: KeyNames::new(limiter.downgrade(), naming, LabelSet::new(max_keys)),
            dimensions: LabelSet::new(max_keys.min(MAX_VALUES)),
            errors: LabelSet::new(max_keys.min(MAX_VALUES)),
        });
        let recording = Arc::clone(&listener);
        match without_reservations {
            true => seam::on_change(limiter, move |event| recording.on_event(event)),
            false => limiter.listen(move |event| recording.on_event(event)),
        }
        Meter::new(limiter.downgrade(), listener)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("sink", &self.sink)
            .field("max_keys", &self.max_keys)
            .finish_non_exhaustive()
    }
}

/// The default maximum number of distinct `key` labels.
const MAX_KEYS: usize = 256;

/// The maximum number of distinct dimensions and error types. Every key has a series for each.
const MAX_VALUES: usize = 32;
