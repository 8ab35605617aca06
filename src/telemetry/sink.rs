use std::fmt;
use std::sync::Arc;

use ::metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, with_recorder};

use super::figure::{ALL, Figure, Kind};

/// Where figures go: to a recorder of their own, or to that of the process.
#[derive(Clone, Default)]
pub(super) struct Sink(Option<Arc<dyn Recorder + Send + Sync>>);

/// The values of a figure's labels, in their order; an empty one is left out.
pub(super) type Values<'a> = &'a [SharedString];

impl Sink {
    pub(super) fn to(recorder: impl Recorder + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(recorder)))
    }

    /// Says what each figure means.
    pub(super) fn describe(&self) {
        self.with(|recorder| {
            for figure in ALL {
                let name = KeyName::from_const_str(figure.name);
                let (unit, meaning) = (Some(figure.unit), SharedString::const_str(figure.meaning));
                match figure.kind {
                    Kind::Counter => recorder.describe_counter(name, unit, meaning),
                    Kind::Gauge => recorder.describe_gauge(name, unit, meaning),
                    Kind::Histogram => recorder.describe_histogram(name, unit, meaning),
                }
            }
        });
    }

    pub(super) fn count(&self, figure: &Figure, values: Values<'_>, amount: u64) {
        let key = key(figure, values);
        self.with(|recorder| recorder.register_counter(&key, &METADATA).increment(amount));
    }

    /// What was counted in all.
    pub(super) fn count_to(&self, figure: &Figure, total: u64) {
        let key = key(figure, &[]);
        self.with(|recorder| recorder.register_counter(&key, &METADATA).absolute(total));
    }

    pub(super) fn set(&self, figure: &Figure, values: Values<'_>, amount: u64) {
        let key = key(figure, values);
        self.with(|recorder| recorder.register_gauge(&key, &METADATA).set(amount as f64));
    }

    pub(super) fn record(&self, figure: &Figure, values: Values<'_>, value: f64) {
        let key = key(figure, values);
        self.with(|recorder| recorder.register_histogram(&key, &METADATA).record(value));
    }

    fn with<T>(&self, tell: impl FnOnce(&dyn Recorder) -> T) -> T {
        match &self.0 {
            Some(recorder) => tell(&**recorder),
            None => with_recorder(tell),
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a recorder" } else { "the process's recorder" })
    }
}

fn key(figure: &Figure, values: Values<'_>) -> Key {
    let labels = figure.labels.iter().zip(values).filter(|(_, value)| !value.is_empty());
    let labels = labels.map(|(name, value)| Label::new(*name, value.clone()));
    Key::from_parts(figure.name, labels.collect::<Vec<_>>())
}

const METADATA: Metadata<'static> =
    Metadata::new("tollgate", Level::INFO, Some("tollgate::telemetry"));
