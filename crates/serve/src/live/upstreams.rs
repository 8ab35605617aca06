use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Serialize;

use tollgate::limiter::Exchange;
use tollgate::quota::Usage;

/// What has passed to each provider since the start. There are as many as there are profiles.
#[derive(Debug, Default)]
pub(super) struct Upstreams(Mutex<BTreeMap<&'static str, Traffic>>);

/// What has passed to one of them.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Traffic {
    requests: u64,
    /// Those of them that went wrong.
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// All of them together, in milliseconds, their waits included.
    took: u64,
}

/// A provider by the name in OpenTelemetry's conventions, and its traffic.
#[derive(Debug, Serialize)]
pub(super) struct Upstream {
    name: &'static str,
    #[serde(flatten)]
    traffic: Traffic,
}

impl Upstreams {
    pub(super) fn hear(&self, exchange: &Exchange) {
        let mut all = self.0.lock();
        let traffic = all.entry(exchange.provider).or_default();
        let took = u64::try_from(exchange.duration.as_millis()).unwrap_or(u64::MAX);
        traffic.requests += 1;
        traffic.failed += u64::from(exchange.error.is_some());
        traffic.took = traffic.took.saturating_add(took);
        if let Some(Usage { input, output, .. }) = exchange.usage {
            traffic.input_tokens = traffic.input_tokens.saturating_add(input);
            traffic.output_tokens = traffic.output_tokens.saturating_add(output);
        }
    }

    pub(super) fn all(&self) -> Vec<Upstream> {
        let all = self.0.lock();
        all.iter().map(|(&name, &traffic)| Upstream { name, traffic }).collect()
    }
}
