use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Serialize;

use paceline::limiter::Exchange;
use paceline::quota::Usage;

/// The traffic of each provider since startup. The number of providers is bounded by the number of
/// profiles.
#[derive(Debug, Default)]
pub(super) struct ProviderTraffic(Mutex<BTreeMap<&'static str, Traffic>>);

/// The traffic of a provider.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Traffic {
    requests: u64,
    /// The number of failed requests.
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// The total duration of all requests in milliseconds, including their waits.
    #[serde(rename = "took")]
    duration: u64,
}

/// A provider, by its name in OpenTelemetry's semantic conventions, and its traffic.
#[derive(Debug, Serialize)]
pub(super) struct Provider {
    name: &'static str,
    #[serde(flatten)]
    traffic: Traffic,
}

impl ProviderTraffic {
    pub(super) fn record(&self, exchange: &Exchange) {
        let mut all = self.0.lock();
        let traffic = all.entry(exchange.provider).or_default();
        let duration = u64::try_from(exchange.duration.as_millis()).unwrap_or(u64::MAX);
        traffic.requests += 1;
        traffic.failed += u64::from(exchange.error.is_some());
        traffic.duration = traffic.duration.saturating_add(duration);
        if let Some(Usage { input, output, .. }) = exchange.usage {
            traffic.input_tokens = traffic.input_tokens.saturating_add(input);
            traffic.output_tokens = traffic.output_tokens.saturating_add(output);
        }
    }

    pub(super) fn all(&self) -> Vec<Provider> {
        let all = self.0.lock();
        all.iter().map(|(&name, &traffic)| Provider { name, traffic }).collect()
    }
}
