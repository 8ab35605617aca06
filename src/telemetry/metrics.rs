use std::fmt;
use std::sync::Arc;

use ::metrics::Recorder;
use compact_str::CompactString;

use super::labels::Labels;
use super::listener::Listener;
use super::meter::Meter;
use super::names::{Names, Naming};
use super::sink::Sink;
use crate::limiter::Limiter;

/// How a limiter's figures are told. See the [module](super) for which there are.
#[derive(Clone)]
pub struct Metrics {
    sink: Sink,
    most: usize,
    naming: Option<Naming>,
    news: bool,
}

impl Metrics {
    /// Figures for the recorder of the process, which should be there before the first event: an
    /// exporter installs it.
    pub fn new() -> Self {
        Self { sink: Sink::default(), most: MOST_KEYS, naming: None, news: false }
    }

    /// Figures for this recorder instead, whatever the process has.
    #[must_use]
    pub fn with_recorder(self, recorder: impl Recorder + Send + Sync + 'static) -> Self {
        Self { sink: Sink::to(recorder), ..self }
    }

    /// Tells at most so many keys apart; all others are `other`. Default: 256.
    #[must_use]
    pub fn with_max_keys(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Asks `naming` first what a key is called. For keys without a quota of their own whose names
    /// are no secret, such as those of [`acquire_limits`](Limiter::acquire_limits): the bound on
    /// their number holds all the same.
    ///
    /// ```
    /// # use tollgate::telemetry::Metrics;
    /// let metrics = Metrics::new().with_names(|key| key.starts_with("job:").then(|| key.into()));
    /// # let _ = metrics;
    /// ```
    #[must_use]
    pub fn with_names(
        self,
        naming: impl Fn(&str) -> Option<CompactString> + Send + Sync + 'static,
    ) -> Self {
        Self { naming: Some(Arc::new(naming)), ..self }
    }

    /// Tells only what costs a reservation nothing: the gauges, cool-downs, reductions, recoveries,
    /// and what the layer tells of requests to a provider.
    /// [`State::totals`](crate::limiter::State::totals) counts granted and denied requests.
    #[must_use]
    pub fn for_news(self) -> Self {
        Self { news: true, ..self }
    }

    /// Counts what happens from now on, and times it.
    pub fn install(self, limiter: &Limiter) -> Meter {
        let Self { sink, most, naming, news } = self;
        sink.describe();
        let few = Labels::new(most.min(MOST_WORDS));
        let listener = Arc::new(Listener {
            sink,
            names: Names::new(limiter.downgrade(), naming, Labels::new(most)),
            dimensions: few,
            errors: Labels::new(most.min(MOST_WORDS)),
        });
        let ear = Arc::clone(&listener);
        match news {
            true => limiter.listen_for_news(move |event| ear.hear(event)),
            false => limiter.listen(move |event| ear.hear(event)),
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
            .field("max_keys", &self.most)
            .finish_non_exhaustive()
    }
}

/// How many keys are told apart.
const MOST_KEYS: usize = 256;

/// How many dimensions and kinds of errors are told apart: every key has a series for each.
const MOST_WORDS: usize = 32;
