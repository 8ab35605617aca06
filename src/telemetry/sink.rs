use std::fmt;
use std::sync::Arc;

use ::metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, with_recorder};

use super::metric_list::ALL;
use super::metric_spec::{Kind, MetricSpec};

/// The recorder of the metrics: the given one, or the global one.
#[derive(Clone, Default)]
pub(super) struct Sink(Option<Arc<dyn Recorder + Send + Sync>>);

/// The values of a metric's labels, in the order of the labels. A label with an empty value is left out.
pub(super) type Values<'a> = &'a [SharedString];

impl Sink {
    pub(super) fn to(recorder: impl Recorder + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(recorder)))
    }

    /// Registers the descriptions of all metrics.
    pub(super) fn describe(&self) {
        self.with(|recorder| {
            for metric in ALL {
                let name = KeyName::from_const_str(metric.name);
                let (unit, description) =
                    (Some(metric.unit), SharedString::const_str(metric.description));
                match metric.kind {
                    Kind::Counter => recorder.describe_counter(name, unit, description),
                    Kind::Gauge => recorder.describe_gauge(name, unit, description),
                    Kind::Histogram => recorder.describe_histogram(name, unit, description),
                }
            }
        });
    }

    pub(super) fn count(&self, metric: &MetricSpec, values: Values<'_>, amount: u64) {
        let key = key(metric, values);
        self.with(|recorder| recorder.register_counter(&key, &METADATA).increment(amount));
    }

    /// Sets the total of a counter.
    pub(super) fn count_to(&self, metric: &MetricSpec, values: Values<'_>, total: u64) {
        let key = key(metric, values);
        self.with(|recorder| recorder.register_counter(&key, &METADATA).absolute(total));
    }

    pub(super) fn set(&self, metric: &MetricSpec, values: Values<'_>, amount: f64) {
        let key = key(metric, values);
        self.with(|recorder| recorder.register_gauge(&key, &METADATA).set(amount));
    }

    pub(super) fn record(&self, metric: &MetricSpec, values: Values<'_>, value: f64) {
        let key = key(metric, values);
        self.with(|recorder| recorder.register_histogram(&key, &METADATA).record(value));
    }

    /// Records a value of a metric without labels `count` times.
    pub(super) fn record_many(&self, metric: &MetricSpec, value: f64, count: u64) {
        let (key, count) = (key(metric, &[]), usize::try_from(count).unwrap_or(usize::MAX));
        self.with(|recorder| {
            recorder.register_histogram(&key, &METADATA).record_many(value, count);
        });
    }

    fn with<T>(&self, record: impl FnOnce(&dyn Recorder) -> T) -> T {
        match &self.0 {
            Some(recorder) => record(&**recorder),
            None => with_recorder(record),
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "own recorder" } else { "global recorder" })
    }
}

fn key(metric: &MetricSpec, values: Values<'_>) -> Key {
    let labels = metric.labels.iter().zip(values).filter(|(_, value)| !value.is_empty());
    let labels = labels.map(|(name, value)| Label::new(*name, value.clone()));
    Key::from_parts(metric.name, labels.collect::<Vec<_>>())
}

const METADATA: Metadata<'static> =
    Metadata::new("paceline", Level::INFO, Some("paceline::telemetry"));
