//! Metrics through the `metrics` facade; spans and events through `tracing`.

mod bounds;
mod exact;
mod layer;
mod log;
mod metrics;
mod spans;
mod targets;

#[cfg(feature = "reqwest")]
mod scrape;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use paceline::limiter::Limiter;
use paceline::telemetry::{Meter, Metrics};

pub(crate) use self::log::Log;
pub(crate) use paceline_testing::metrics_page::MetricsPage;

/// The metrics of a limiter as Prometheus would scrape them.
pub(crate) struct MetricsExporter {
    pub(crate) meter: Meter,
    handle: PrometheusHandle,
}

impl MetricsExporter {
    pub(crate) fn of(limiter: &Limiter, metrics: Metrics) -> Self {
        let exporter = PrometheusBuilder::new().set_buckets(&[0.1, 1.0, 10.0]).unwrap();
        let exporter = exporter.build_recorder();
        let handle = exporter.handle();
        Self { meter: metrics.with_recorder(exporter).install(limiter), handle }
    }

    pub(crate) fn page(&self) -> MetricsPage {
        self.meter.sample();
        MetricsPage::parse(&self.handle.render())
    }
}
