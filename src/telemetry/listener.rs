use std::time::Duration;

use ::metrics::SharedString;

use super::key_names::KeyNames;
use super::label_set::{LabelSet, OTHER};
use super::metric_spec::{
    CHARGED_TOKENS, COOLING_DOWN, DENIED, ESTIMATE, GRANTED, MetricSpec, OPERATION_DURATION,
    RECOVERED, REDUCED, RELEASED, RESERVED_TOKENS, SETTLED, TOKEN_USAGE, WAIT,
};
use super::sink::Sink;
use crate::limiter::{Event, Exchange};
use crate::quota::{Cost, Dimension, Usage};

/// A listener that records the events of a limiter as metrics.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) sink: Sink,
    pub(super) names: KeyNames,
    pub(super) dimensions: LabelSet,
    pub(super) errors: LabelSet,
}

impl Listener {
    pub(super) fn on_event(&self, event: &Event) {
        match event {
            Event::Granted { key, .. } => self.count(&GRANTED, key),
            Event::Denied { key, dimension, .. } => self.record_denial(key, dimension.as_ref()),
            Event::Waited { key, duration, .. } => self.record_wait(key, *duration),
            Event::Settled { key, charged: None, .. } => self.count(&RELEASED, key),
            Event::Settled { key, reserved, charged: Some(charged) } => {
                self.record_settlement(self.names.of(key), reserved, charged);
            }
            Event::CoolingDown { key, .. } => self.count(&COOLING_DOWN, key),
            Event::Reduced { key, .. } => self.count(&REDUCED, key),
            Event::Recovered { key, .. } => self.count(&RECOVERED, key),
            Event::Exchanged(exchange) => self.record_exchange(exchange),
            _ => {}
        }
    }

    fn count(&self, metric: &MetricSpec, key: &str) {
        self.sink.count(metric, &[self.names.of(key)], 1);
    }

    fn record_denial(&self, key: &str, dimension: Option<&Dimension>) {
        let dimension = dimension.map_or(NONE, |dimension| self.dimensions.of(dimension.as_str()));
        self.sink.count(&DENIED, &[self.names.of(key), dimension], 1);
    }

    fn record_wait(&self, key: &str, duration: Duration) {
        self.sink.record(&WAIT, &[self.names.of(key)], duration.as_secs_f64());
    }

    fn record_settlement(&self, key: SharedString, reserved: &Cost, charged: &Cost) {
        for dimension in [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens] {
            let (reserved, charged) = (reserved.amount(&dimension), charged.amount(&dimension));
            if (reserved, charged) != (0, 0) {
                let labels = [key.clone(), self.dimensions.of(dimension.as_str())];
                self.sink.count(&RESERVED_TOKENS, &labels, reserved);
                self.sink.count(&CHARGED_TOKENS, &labels, charged);
            }
        }
        let (estimate, charge) = (reserved.all_tokens(), charged.all_tokens());
        if charge > 0 {
            self.sink.record(
                &ESTIMATE,
                std::slice::from_ref(&key),
                estimate as f64 / charge as f64,
            );
        }
        self.sink.count(&SETTLED, &[key], 1);
    }

    fn record_exchange(&self, exchange: &Exchange) {
        let Exchange { model, provider, operation, error, usage, duration, .. } = exchange;
        let model = match self.names.of(model) {
            // A key other than the model limits the request, such as an account.
            name if name == OTHER => self.names.of(&exchange.key),
            name => name,
        };
        let label = |text: &'static str| SharedString::const_str(text);
        let error = error.as_ref().map_or(label(""), |error| self.errors.of(error));
        let labels = [label(operation), label(provider), model.clone(), error];
        self.sink.record(&OPERATION_DURATION, &labels, duration.as_secs_f64());
        let Some(Usage { input, output, .. }) = *usage else { return };
        for (kind, tokens) in [("input", input), ("output", output)] {
            let labels = [label(operation), label(provider), model.clone(), label(kind)];
            self.sink.record(&TOKEN_USAGE, &labels, tokens as f64);
        }
    }
}

/// The dimension of denials that no limit caused: other requests wait, or the key cools down.
const NONE: SharedString = SharedString::const_str("none");
